//! From numbers to the `prometheus` crate's families.

use prometheus::core::Desc;
use prometheus::proto::{self, LabelPair, MetricFamily, MetricType};

use super::histogram::Histogram;
use super::table::{Kind, Metric};

impl Metric {
    /// What the registry checks names and labels by.
    pub(super) fn desc(&self) -> prometheus::Result<Desc> {
        let labels = self.labels.iter().map(|label| (*label).to_owned()).collect();
        Desc::new(self.name.to_owned(), self.help.to_owned(), labels, Default::default())
    }
}

/// One family in the making.
pub(super) struct Family {
    metric: &'static Metric,
    series: Vec<proto::Metric>,
}

impl Family {
    pub(super) fn new(metric: &'static Metric) -> Self {
        Self { metric, series: Vec::new() }
    }

    /// A family of one series.
    pub(super) fn single(metric: &'static Metric, value: f64) -> MetricFamily {
        let mut family = Self::new(metric);
        family.value(&[], value);
        family.finish()
    }

    /// A family of one histogram.
    pub(super) fn single_histogram(metric: &'static Metric, histogram: &Histogram) -> MetricFamily {
        let mut family = Self::new(metric);
        family.histogram(&[], histogram);
        family.finish()
    }

    /// The label pairs, sorted by name as client_golang does. `values` are in the order of `Metric::labels`.
    fn labels(&self, values: &[&str]) -> Vec<LabelPair> {
        let mut pairs: Vec<(&str, &str)> = self.metric.labels.iter().copied().zip(values.iter().copied()).collect();
        pairs.sort_unstable();
        pairs
            .into_iter()
            .map(|(name, value)| {
                let mut pair = LabelPair::default();
                pair.set_name(name.to_owned());
                pair.set_value(value.to_owned());
                pair
            })
            .collect()
    }

    /// Adds a series of a counter or gauge.
    pub(super) fn value(&mut self, labels: &[&str], value: f64) {
        let mut series = proto::Metric::from_label(self.labels(labels));
        if self.metric.kind == Kind::Counter {
            let mut counter = proto::Counter::default();
            counter.set_value(value);
            series.set_counter(counter);
        } else {
            let mut gauge = proto::Gauge::default();
            gauge.set_value(value);
            series.set_gauge(gauge);
        }
        self.series.push(series);
    }

    /// Adds a series of a counter, unless it is still zero: CoreDNS shows none before its first event.
    pub(super) fn nonzero(&mut self, labels: &[&str], count: u64) {
        if count > 0 {
            self.value(labels, count as f64);
        }
    }

    /// Adds a series of a histogram.
    pub(super) fn histogram(&mut self, labels: &[&str], histogram: &Histogram) {
        let mut sum = 0;
        let buckets = histogram.bounds.iter().zip(&histogram.counts).map(|(bound, count)| {
            sum += count;
            let mut bucket = proto::Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(sum);
            bucket
        });
        let mut value = proto::Histogram::default();
        value.set_bucket(buckets.collect());
        value.set_sample_count(histogram.count());
        value.set_sample_sum(histogram.sum);
        let mut series = proto::Metric::from_label(self.labels(labels));
        series.set_histogram(value);
        self.series.push(series);
    }

    pub(super) fn finish(self) -> MetricFamily {
        let mut family = MetricFamily::default();
        family.set_name(self.metric.name.to_owned());
        family.set_help(self.metric.help.to_owned());
        family.set_field_type(match self.metric.kind {
            Kind::Counter => MetricType::COUNTER,
            Kind::Gauge => MetricType::GAUGE,
            Kind::Histogram(_) => MetricType::HISTOGRAM,
        });
        family.set_metric(self.series);
        family
    }
}
