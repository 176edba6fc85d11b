"""What type checkers and editors see of the lazy names of `rope_minimal`."""

from .attention import RotarySelfAttention as RotarySelfAttention
from .axes import mrope_positions as mrope_positions
from .axes import wave_vectors as wave_vectors
from .cache import KVCache as KVCache
from .cache import move_keys as move_keys
from .frequencies import inverse_frequencies as inverse_frequencies
from .frequencies import wavelengths as wavelengths
from .layout import permute_qk as permute_qk
from .layout import to_half as to_half
from .layout import to_interleaved as to_interleaved
from .reference import rotate_by_matrix as rotate_by_matrix
from .reference import rotate_complex as rotate_complex
from .reference import rotation_matrix as rotation_matrix
from .rescaling import rescaled_frequencies as rescaled_frequencies
from .rotation import RotaryEmbedding as RotaryEmbedding
from .rotation import apply_rope as apply_rope
from .rotation import rope_table as rope_table
from .serving import LatentAttention as LatentAttention
from .serving import document_mask as document_mask
from .serving import zigzag_indices as zigzag_indices

__version__: str
