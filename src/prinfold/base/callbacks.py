"""scikit-learn's callbacks (1.9 and later), and a stand-in for versions before them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeVar, cast

from prinfold.base.checkpoint import Checkpoint
from prinfold.base.dask_samples import fit_to_sample
from prinfold.loops import Iteration
from prinfold.loops.progress import passes_shown
from prinfold.rows.blocks import Blocks
from prinfold.rows.rows import blas_on_one_thread
from prinfold.validation.dask_verbs import is_dask

__all__ = ["CallbackForwarder", "CallbackSupportMixin", "fit_method", "forward_to_callbacks"]

F = TypeVar("F", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in with the same ``set_callbacks``; hooks are called by :func:`forward_to_callbacks`."""

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Keep callbacks that have ``on_fit_task_end(estimator, context)``."""
            if not all(hasattr(callback, "on_fit_task_end") for callback in callbacks):
                raise TypeError("callbacks must be instances following the FitCallback protocol.")
            self._skl_callbacks = list(callbacks)
            return self

    def with_callbacks(method: F) -> F:
        """Leave the method as it is: there is nothing to tear down."""
        return method


def fit_method(method: F) -> F:
    """A ``fit`` method that runs scikit-learn's callbacks, and keeps BLAS to one thread from beginning to end.

    Asking for that at every step would show, and a product that is shared out among threads may be rounded in another
    way: a fit is to be the same on any number of them. Of a Dask collection a method that needs all rows at once is
    fitted to a sample.
    """
    held = with_callbacks(blas_on_one_thread()(method))
    names = tuple(signature(method).parameters)[2:]

    @wraps(method)
    def fit(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if isinstance(X, Blocks):
            with passes_shown(int(self.verbose), type(self).__name__):
                return held(self, X, *args, **options)
        if not is_dask(X):
            return held(self, X, *args, **options)
        if self._takes_blocks:
            return held(self, Blocks(X), *args, **options)
        given = dict(zip(names, args, strict=False)) | options
        return fit_to_sample(self, X, partial(held, self), {name: each for name, each in given.items() if name != "y"})

    return cast(F, fit)


class CallbackForwarder:
    """A loop listener that tells scikit-learn's callbacks of each iteration.

    ``attributes(state)`` gives the fitted attributes with which a callback can try the model as it is.
    """

    def __init__(self, estimator: Any, X: Any, max_iter: int, attributes: Callable[[Any], Mapping[str, Any]]) -> None:
        self.estimator, self.X, self.attributes = estimator, X, attributes
        self.context: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self.context = estimator._init_callback_context(max_subtasks=max_iter + 1)
            self.context.call_on_fit_task_begin(estimator=estimator, X=X)

    def __call__(self, iteration: Iteration[Any]) -> bool:
        if self.context is None:
            callbacks = self.estimator._skl_callbacks
            # Every callback is called at every iteration, even if an earlier one asks to stop.
            asked = [callback.on_fit_task_end(self.estimator, iteration) for callback in callbacks]
            return any(asked)
        task = self.context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        fitted = dict(self.attributes(iteration.state))
        return bool(task.call_on_fit_task_end(estimator=self.estimator, X=self.X, reconstruction_attributes=fitted))

    def close(self, message: str) -> None:
        """End the outer task."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, X=self.X)


def forward_to_callbacks(
    estimator: Any, X: Any, max_iter: int, attributes: Callable[[Any], Mapping[str, Any]]
) -> list[CallbackForwarder]:
    """Listeners for the callbacks set on ``estimator``: one, or none where none are set, or checkpoints alone."""
    callbacks = getattr(estimator, "_skl_callbacks", None) or ()
    if all(isinstance(each, Checkpoint) for each in callbacks):
        return []
    return [CallbackForwarder(estimator, X, max_iter, attributes)]
