"""What can go wrong with a training set. Every message names the object and says what to do."""


class DatasetError(RuntimeError):
    """Any of the errors below, or a training set that cannot be read for another reason."""


class MissingObject(DatasetError):
    """An object that generation.json names is not there."""


class DamagedObject(DatasetError):
    """An object is not what was written (its size, its rows or a checksum), or cannot be read."""


class StateMismatch(DatasetError):
    """A state was saved on another training set, or in another order of its rows."""
