"""What type checkers and editors see of the lazy names of `rope_minimal`."""

from .aliasing import angle_horizon as angle_horizon
from .aliasing import circle_gaps as circle_gaps
from .aliasing import code_distance as code_distance
from .aliasing import cosine_horizon as cosine_horizon
from .aliasing import mean_cosine as mean_cosine
from .aliasing import near_repeats as near_repeats
from .aliasing import nearest_code as nearest_code
from .aliasing import nearest_offset as nearest_offset
from .aliasing import neighbour_contrast as neighbour_contrast
from .aliasing import neighbour_snr as neighbour_snr
from .aliasing import rounding_noise as rounding_noise
from .aliasing import unseen_pairs as unseen_pairs
from .aliasing import wrapped_angle as wrapped_angle
from .attention import RotarySelfAttention as RotarySelfAttention
from .axes import mrope_positions as mrope_positions
from .axes import wave_vectors as wave_vectors
from .cache import KVCache as KVCache
from .cache import move_keys as move_keys
from .derivation import Derivation as Derivation
from .derivation import DerivationError as DerivationError
from .derivation import MatrixFunction as MatrixFunction
from .derivation import Step as Step
from .derivation import check_relative as check_relative
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
