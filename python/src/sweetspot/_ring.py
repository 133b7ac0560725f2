"""Ring files, one for each thread that writes; docs/reference/link.md describes the layout, version 1."""

from __future__ import annotations

import mmap
import os
import struct
import sys
import threading
import weakref
from time import monotonic_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ._device import Clock

FOLDER = os.environ.get("SWEETSPOT_LINK") if sys.platform == "linux" and sys.byteorder == "little" else None

BEGIN, END, ITEMS, VALUE, PHASE = (kind << 16 for kind in range(1, 6))

_VERSION = 1
_HEADER, _SLOT, _SLOTS, _RECORD = 256, 128, 256, 32
_LOST, _REFUSED, _CLOSED, _READ = 128 // 8, 136 // 8, 144 // 8, 192 // 8
_BASE = _HEADER + _SLOTS * _SLOT
_CONTROL_HEADER, _WORDS = 64, 32
_PREFIX = "ring-"
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "LOCAL_RANK")

# The sequence number is the last field: pack_into clears the record, then stores the fields in order, each native
# one in a single write.
pack_whole = struct.Struct("@QQIIQ").pack_into
pack_real = struct.Struct("@QdIIQ").pack_into

_lock = threading.RLock()
_rings: weakref.WeakSet[Ring] = weakref.WeakSet()
_slots: list[bytes] = []
_index: dict[bytes, int] = {}
_control: memoryview | None = None
_failed = False
_complained = False
# The smallest batch that did not fit, for all threads: they share the device.
fits_below = 1 << 64


def too_large(batch: int) -> None:
    global fits_below
    if 0 < batch < fits_below:
        fits_below = batch


def complain(what: str) -> None:
    """Prints one message on stderr: a workload must never fail because of its link."""
    global _complained
    if _complained:
        return
    _complained = True
    try:
        print("sweetspot: %s" % what, file=sys.stderr, flush=True)
    except Exception:
        pass


def name_index(name: object) -> int:
    """The index of a name in every ring of this process, or -1 if the table is full."""
    raw = str(name).encode("utf-8", "replace")
    if len(raw) >= _SLOT:
        raw = raw[: _SLOT - 1].decode("utf-8", "ignore").encode("utf-8")
    if not raw:
        return 0
    with _lock:
        index = _index.get(raw)
        if index is None:
            if len(_slots) >= _SLOTS:
                return -1
            index = _index[raw] = len(_slots)
            _slots.append((bytes((len(raw),)) + raw).ljust(_SLOT, b"\0"))
            for ring in _rings:
                ring.put_name(index)
    return index


name_index("(other names)")


def control() -> memoryview | None:
    """The control file as 64-bit words, the header first. None if there is no link."""
    global _control, _failed
    if _control is None and not _failed:
        try:
            _control = _open_control()
        except Exception as error:
            _failed = True
            complain("cannot use the link in %s, nothing is recorded: %s" % (FOLDER, error))
    return _control


def _open_control() -> memoryview:
    assert FOLDER is not None
    length = _CONTROL_HEADER + _WORDS * 8
    with open(os.path.join(FOLDER, "control"), "rb") as file:
        if os.fstat(file.fileno()).st_size != length:
            raise ValueError("its control file has the wrong length")
        map = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ)
    magic, version, header, words, capacity = struct.unpack_from("<8sIIII", map)
    if magic != b"SWSPCTRL":
        raise ValueError("its control file is damaged")
    if version != _VERSION:
        raise ValueError("it has layout version %d, this client writes version %d" % (version, _VERSION))
    if (header, words) != (_CONTROL_HEADER, _WORDS) or not 64 <= capacity <= 1 << 20 or capacity & (capacity - 1):
        raise ValueError("its control file is damaged")
    return memoryview(map).cast("Q")


class Ring:
    """A ring file, created at the first write of its thread; after it is closed, the next write creates another."""

    __slots__ = (
        "map", "words", "next", "limit", "lost", "mask", "refused", "pid", "device", "reported_size", "__weakref__",
    )

    def __init__(self) -> None:
        self.device: Clock | None = None
        self._reset()
        with _lock:
            _rings.add(self)

    def _reset(self) -> None:
        # There is a file whenever a number is below the limit.
        self.map: Any = None
        self.words: memoryview | None = None
        self.next = self.limit = self.lost = self.mask = self.refused = self.reported_size = 0
        self.pid = os.getpid()

    def forget(self) -> None:
        """Drops the file after a fork: it is the parent's."""
        self.device = None
        self._reset()

    def close(self) -> None:
        if self.words is not None and self.pid == os.getpid():
            self.words[_CLOSED] = 1
            self._reset()

    def __del__(self) -> None:
        try:
            if self.device is not None and self.pid == os.getpid():
                self.device.resolve(self, wait=True)
            self.close()
        except Exception:
            pass

    def put_name(self, index: int) -> None:
        if self.map is not None:
            at = _HEADER + index * _SLOT
            self.map[at : at + _SLOT] = _slots[index]

    def count_refused(self) -> None:
        self.refused += 1
        if self.words is not None:
            self.words[_REFUSED] = self.refused

    def count_lost(self) -> int:
        if (self.words is not None or self.next_number() >= 0) and self.words is not None:
            total = self.words[_LOST] + 1
            self.words[_LOST] = total
            self.lost = total & 0xFFFFFFFF
        return -1

    def next_number(self) -> int:
        """The number of the next record, or -1 if it cannot be written."""
        global _failed
        if self.map is None:
            if control() is None:
                return -1
            try:
                with _lock:
                    self._open()
            except Exception as error:
                _failed = True
                self._reset()
                complain("cannot create a ring in %s, nothing is recorded: %s" % (FOLDER, error))
                return -1
        assert self.words is not None
        first, second = self.words[_READ], self.words[_READ + 1]
        # Two different words are half written.
        if first == second and first <= self.next:
            self.limit = first + self.mask + 1
        return self.next if self.next < self.limit else self.count_lost()

    def record(self, pack: Callable[..., None], kind: int, at: int, value: float) -> None:
        number = self.next
        if number >= self.limit:
            number = self.next_number()
            if number < 0:
                return
        self.next = number + 1
        pack(self.map, _BASE + (number & self.mask) * _RECORD, at, value, kind, self.lost, number + 1)

    def _open(self) -> None:
        if _failed:
            raise RuntimeError("an earlier attempt failed")
        assert _control is not None and FOLDER is not None
        capacity = struct.unpack_from("<I", _control.obj, 20)[0]
        length = _BASE + capacity * _RECORD
        name = "%s%d-%d-%d" % (_PREFIX, os.getpid(), threading.get_native_id(), monotonic_ns())
        draft = os.path.join(FOLDER, "." + name)
        fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            # Reserves all memory now: a later write without memory would end the program with SIGBUS.
            os.posix_fallocate(fd, 0, length)
            populate = getattr(mmap, "MAP_POPULATE", 0)
            map = mmap.mmap(fd, length, flags=mmap.MAP_SHARED | populate)
            map[:_HEADER] = _header(capacity)
            for index, slot in enumerate(_slots):
                at = _HEADER + index * _SLOT
                map[at : at + _SLOT] = slot
            os.rename(draft, os.path.join(FOLDER, name))
        except BaseException:
            os.unlink(draft)
            raise
        finally:
            os.close(fd)
        words = memoryview(map).cast("Q")
        words[_REFUSED] = self.refused
        self.next, self.lost, self.mask, self.pid = 0, 0, capacity - 1, os.getpid()
        self.map, self.words, self.limit = map, words, capacity


def _header(capacity: int) -> bytes:
    rank = 0xFFFFFFFF
    for name in _RANKS:
        text = os.environ.get(name, "").strip()
        if text.isdecimal() and int(text) < rank:
            rank = int(text)
            break
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = bytes.fromhex(file.read().strip().replace("-", ""))
        with open("/proc/thread-self/stat", "rb") as file:
            start = int(file.read().rpartition(b")")[2].split()[19])
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except (OSError, ValueError, IndexError):
        boot, start, namespace = bytes(16), 0, 0
    return struct.pack(
        "<8s8I16sIIQQ",
        b"SWSPRING",
        *(_VERSION, _HEADER, _RECORD, capacity, _SLOTS, _SLOT, 1, rank),
        boot,
        os.getpid(),
        threading.get_native_id(),
        start,
        namespace,
    ).ljust(_HEADER, b"\0")


class Local(threading.local):
    """The ring of the calling thread."""

    def __init__(self) -> None:
        self.ring = Ring()


def after_fork() -> None:
    """Resets the child: threads that do not exist in it may hold the locks."""
    global _lock
    _lock = threading.RLock()
    for ring in list(_rings):
        ring.forget()


def close_all() -> None:
    """Records the remaining device phases at exit, and closes each ring."""
    for ring in list(_rings):
        try:
            if ring.device is not None:
                ring.device.resolve(ring, wait=True)
            ring.close()
        except Exception:
            pass
