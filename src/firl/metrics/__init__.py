"""How far apart expert and agent are, and with what certainty. Never sees how training works."""

from firl.metrics.intervals import PAPER_WINDOW as PAPER_WINDOW
from firl.metrics.intervals import bootstrap_interval as bootstrap_interval
from firl.metrics.intervals import interquartile_mean as interquartile_mean
from firl.metrics.intervals import mean as mean
from firl.metrics.intervals import moving_average as moving_average
from firl.metrics.kde_divergence import Divergences as Divergences
from firl.metrics.kde_divergence import divergences_from_log_ratios as divergences_from_log_ratios
from firl.metrics.kde_divergence import kde_divergences as kde_divergences
from firl.metrics.knn import forward_kl as forward_kl
from firl.metrics.knn import knn_entropy as knn_entropy
from firl.metrics.knn import knn_kl as knn_kl
from firl.metrics.knn import reverse_kl as reverse_kl
from firl.metrics.knn import reverse_kl_to_density as reverse_kl_to_density
