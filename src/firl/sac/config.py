"""SAC's hyper-parameters live with all others."""

from firl.config import SACConfig as SACConfig
    precision: Literal["float32", "bfloat16"] = "float32"
    """What the factors of hidden × hidden products are rounded to; sums stay float32."""
