"""log ρ_E − log ρ_agent: fitted, then asked."""

from firl.log_ratio.base import AbstractLogRatio as AbstractLogRatio
from firl.log_ratio.density import DensityLogRatio as DensityLogRatio
from firl.log_ratio.kde import POINT_MASS_BANDWIDTH as POINT_MASS_BANDWIDTH
from firl.log_ratio.kde import REACHER_BANDWIDTH as REACHER_BANDWIDTH
from firl.log_ratio.kde import KernelDensity as KernelDensity
from firl.log_ratio.kde import scott_bandwidth as scott_bandwidth
from firl.log_ratio.kernels import AbstractKernel as AbstractKernel
from firl.log_ratio.kernels import Epanechnikov as Epanechnikov
from firl.log_ratio.kernels import GaussianKernel as GaussianKernel
