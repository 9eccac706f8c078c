"""giantstream's training sets as a torch.utils.data.IterableDataset; README.md teaches their use."""

from .batch import Batch, Features, Level
from .dataset import TRAINING_COLUMNS, StreamingDataset, StreamingLoader
from .errors import DamagedObject, DatasetError, MissingObject, StateMismatch
from .generation import Generation, Part
from .order import Order
from .slices import SlicedGradients

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "DamagedObject",
    "DatasetError",
    "Features",
    "Generation",
    "Level",
    "MissingObject",
    "Order",
    "Part",
    "SlicedGradients",
    "StateMismatch",
    "StreamingDataset",
    "StreamingLoader",
    "TRAINING_COLUMNS",
]
