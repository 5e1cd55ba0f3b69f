"""Passes over rows on a device such as a GPU: ``device`` finds one, ``softmax_sums`` is the arithmetic, written once.

Entry: :class:`~prinfold.devices.device.Device`. ``fused_sums`` is the same arithmetic in Triton, where that is.
"""

from prinfold.devices.device import Device, current_device, find_device, rows_from

__all__ = ["Device", "current_device", "find_device", "rows_from"]
