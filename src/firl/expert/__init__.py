"""The expert, given as a density: where states are meant to be."""

from firl.expert.base import AbstractDensity as AbstractDensity
from firl.expert.callable import CallableDensity as CallableDensity
from firl.expert.densities import Gaussian as Gaussian
from firl.expert.densities import Mixture as Mixture
from firl.expert.densities import Uniform as Uniform
from firl.expert.energy import Energy as Energy
from firl.expert.picture import Picture as Picture
from firl.expert.regions import AbstractRegion as AbstractRegion
from firl.expert.regions import Box as Box
from firl.expert.regions import Disc as Disc
from firl.expert.truncated import Normalised as Normalised
from firl.expert.truncated import Truncated as Truncated
from firl.expert.truncated import normalise_on as normalise_on
