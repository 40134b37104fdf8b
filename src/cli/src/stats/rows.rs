//! The rows of the tables: the sums over all files, sorted, and with their shares.

use super::groups::{Agent, Group, Process};
use super::part::Part;
use super::series::{Series, Statistics};
use crate::trace_reader::Trace;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// The statistics, which all formats print.
pub struct Report {
    /// The tables of rows.
    pub tables: Vec<(Part, Vec<Section>)>,
    /// The gaps of each queue, and their rows, if they were requested.
    pub queues: Option<Vec<(QueueGaps, Section)>>,
    pub totals: Totals,
    pub dispatches: u64,
    /// The following dispatches are in no row.
    pub unfinished: u64,
    pub without_times: u64,
    pub backwards: u64,
    /// Whether groups with the same name can be on different hosts.
    pub has_hosts: bool,
}

/// The subject of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    /// The kernel, function, direction or message.
    pub name: Rc<str>,
    /// Of a kernel: the build ID of its code object, if it is known. Kernels with the same name and other ones have their own rows.
    pub build_id: Option<Rc<str>>,
    /// The type of a marker.
    pub what: Option<&'static str>,
    /// A kernel with which HIP copies or fills.
    pub is_blit: bool,
    /// Of a copy.
    pub source: Option<Agent>,
    /// Of a copy. For a blit kernel, the GPU on which it ran.
    pub destination: Option<Agent>,
}

impl Subject {
    pub fn named(name: Rc<str>) -> Subject {
        Subject {
            name,
            ..Subject::default()
        }
    }

    /// A kernel. If names are short, kernels with the same name are one row.
    pub fn kernel(id: u32, trace: &mut Trace) -> Subject {
        let is_distinct = !trace.joins_kernels();
        Subject {
            build_id: trace.build_id(id).filter(|_| is_distinct).map(Rc::from),
            ..Subject::named(trace.kernel(id))
        }
    }

    /// The host of a copy with a source or destination. Both are on the same one.
    pub fn host(&self) -> Option<&str> {
        let agent = self.source.as_ref().or(self.destination.as_ref());
        agent?.host.as_deref()
    }
}

/// The times of a row, and for copies the bytes.
#[derive(Debug, Default)]
pub struct Numbers {
    pub series: Series,
    pub bytes: u128,
}

impl From<Series> for Numbers {
    fn from(series: Series) -> Numbers {
        Numbers { series, bytes: 0 }
    }
}

impl Numbers {
    fn merge(&mut self, other: Numbers) {
        self.series.merge(other.series);
        self.bytes += other.bytes;
    }
}

/// The gaps of a queue, or of a GPU.
#[derive(Debug)]
pub struct QueueGaps {
    pub group: Group,
    pub all: Statistics,
    /// By the kernel that ran before.
    pub after: HashMap<Subject, Series>,
    /// See [`super::gaps::Gaps`].
    pub busy: u64,
    pub uncounted: u64,
    pub late: u64,
    pub has_kernels: bool,
}

impl QueueGaps {
    /// The time in which kernels ran, plus the gaps, in nanoseconds. Gaps that are not counted are not in it.
    pub fn active(&self) -> u64 {
        self.busy.saturating_add(self.all.total)
    }

    /// The share of the gaps in the active time, in percent.
    pub fn idle_share(&self) -> f64 {
        percent(self.all.total.into(), self.active().into())
    }
}

/// The sums over all files.
#[derive(Debug, Default)]
pub struct Totals {
    pub processes: Vec<Rc<Process>>,
    /// All GPUs.
    pub gpus: BTreeSet<Agent>,
    rows: HashMap<Part, HashMap<(Group, Subject), Numbers>>,
    pub queues: Vec<QueueGaps>,
    pub gpu_gaps: Vec<QueueGaps>,
    /// Records without times, which are in no row.
    pub untimed: HashMap<Part, u64>,
}

/// The rows of a group, longest total time first.
#[derive(Debug)]
pub struct Section {
    pub group: Group,
    pub rows: Vec<Row>,
    /// Number and share of the rows that `--top` left out.
    pub left_out: (usize, f64),
}

#[derive(Debug)]
pub struct Row {
    pub subject: Subject,
    /// The beginning of the build ID, if another row of the group has the same name.
    pub short_id: Option<String>,
    pub times: Statistics,
    pub bytes: u128,
    /// Percentage of the time of its group.
    pub share: f64,
}

impl Row {
    /// Bytes per second of copy time. `None` if the bytes or the time are not known. The times of copies that overlap
    /// add up, so this is the speed of one copy, and not how much a link transferred per second.
    pub fn bandwidth(&self) -> Option<f64> {
        let time = self.times.total;
        (!self.subject.is_blit && time > 0).then(|| self.bytes as f64 * 1e9 / time as f64)
    }

    /// The mean number of bytes of a copy. `None` if it is not known.
    pub fn mean_size(&self) -> Option<f64> {
        let calls = self.times.calls.max(1);
        (!self.subject.is_blit).then(|| self.bytes as f64 / calls as f64)
    }
}

impl Totals {
    pub fn add(&mut self, part: Part, group: Group, subject: Subject, numbers: Numbers) {
        let rows = self.rows.entry(part).or_default();
        rows.entry((group, subject)).or_default().merge(numbers);
    }

    pub fn has_rows(&self, part: Part) -> bool {
        match part {
            Part::Gaps => self.queues.iter().any(|queue| queue.has_kernels),
            part => self.rows.contains_key(&part),
        }
    }

    /// Adds up the copies of a direction, whatever their source and destination.
    pub fn join_routes(&mut self) {
        for ((group, subject), numbers) in self.rows.remove(&Part::Copies).unwrap_or_default() {
            let subject = Subject {
                source: None,
                destination: None,
                ..subject
            };
            self.add(Part::Copies, group, subject, numbers);
        }
    }

    /// Adds the nodes to the names of GPUs that have the same name on the same host: `ROCR_VISIBLE_DEVICES` gives
    /// different ones to several processes.
    pub fn name_gpus(&mut self) {
        let mut nodes: BTreeMap<_, BTreeSet<u32>> = BTreeMap::new();
        for gpu in &self.gpus {
            let name = (gpu.host.clone(), gpu.name.clone());
            nodes.entry(name).or_default().insert(gpu.node);
        }
        nodes.retain(|_, nodes| nodes.len() > 1);
        if nodes.is_empty() {
            return;
        }
        let rename = |agent: &mut Option<Agent>| {
            if let Some(agent) = agent
                && nodes.contains_key(&(agent.host.clone(), agent.name.clone()))
            {
                agent.name_with_node();
            }
        };
        for rows in self.rows.values_mut() {
            let all = std::mem::take(rows).into_iter();
            rows.extend(all.map(|((mut group, mut subject), numbers)| {
                rename(&mut group.agent);
                rename(&mut subject.source);
                rename(&mut subject.destination);
                ((group, subject), numbers)
            }));
        }
        for queue in self.queues.iter_mut().chain(&mut self.gpu_gaps) {
            rename(&mut queue.group.agent);
        }
    }

    /// Whether the processes ran on several hosts.
    pub fn has_hosts(&self) -> bool {
        let hosts: BTreeSet<_> = self.processes.iter().map(|process| &process.host).collect();
        hosts.len() > 1
    }

    /// The rows of a part, at most `top` of each group, in the order of the groups.
    pub fn sections(&mut self, part: Part, top: Option<usize>) -> Vec<Section> {
        let rows = self.rows.remove(&part).unwrap_or_default();
        let mut groups: BTreeMap<Group, Vec<(Subject, Numbers)>> = BTreeMap::new();
        for ((group, subject), numbers) in rows {
            groups.entry(group).or_default().push((subject, numbers));
        }
        let sections = groups.into_iter();
        let sections = sections.map(|(group, rows)| section(group, rows, top));
        sections.collect()
    }
}

impl QueueGaps {
    /// The rows, by the kernels that ran before the gaps.
    pub fn section(&mut self, top: Option<usize>) -> Section {
        let rows = std::mem::take(&mut self.after).into_iter();
        let rows = rows.map(|(kernel, series)| (kernel, series.into()));
        section(self.group.clone(), rows.collect(), top)
    }
}

/// The build IDs of kernels that have the same name.
struct ShortIds {
    repeated: HashMap<Rc<str>, BTreeSet<Option<Rc<str>>>>,
    /// The number of characters that distinguishes all build IDs, unless one is the beginning of another.
    length: usize,
}

impl ShortIds {
    /// The least number of characters.
    const MIN: usize = 8;

    fn of<'a>(subjects: impl Iterator<Item = &'a Subject>) -> ShortIds {
        let mut repeated: HashMap<Rc<str>, BTreeSet<Option<Rc<str>>>> = HashMap::new();
        for subject in subjects {
            let ids = repeated.entry(subject.name.clone()).or_default();
            ids.insert(subject.build_id.clone());
        }
        repeated.retain(|_, ids| ids.len() > 1);
        let ids: BTreeSet<_> = repeated.values().flatten().flatten().collect();
        let next = ids.iter().skip(1);
        let common = ids.iter().zip(next).map(|(one, other)| {
            let pairs = one.bytes().zip(other.bytes());
            pairs.take_while(|(one, other)| one == other).count()
        });
        let length = Self::MIN.max(1 + common.max().unwrap_or(0));
        ShortIds { repeated, length }
    }

    /// The beginning of a kernel's build ID, if another kernel has the same name.
    fn get(&self, subject: &Subject) -> Option<String> {
        let id = subject.build_id.as_ref()?;
        let is_repeated = self.repeated.contains_key(&subject.name);
        is_repeated.then(|| id.chars().take(self.length).collect())
    }
}

/// The sorted rows of a group.
fn section(group: Group, rows: Vec<(Subject, Numbers)>, top: Option<usize>) -> Section {
    let short_ids = ShortIds::of(rows.iter().map(|(subject, _)| subject));
    let rows = rows.into_iter().map(|(subject, numbers)| Row {
        short_id: short_ids.get(&subject),
        subject,
        times: numbers.series.statistics(),
        bytes: numbers.bytes,
        share: 0.0,
    });
    let mut rows: Vec<Row> = rows.collect();
    let total = |rows: &[Row]| rows.iter().map(|row| u128::from(row.times.total)).sum();
    let all = total(&rows);
    rows.sort_by(|a, b| {
        let by_time = Reverse(a.times.total).cmp(&Reverse(b.times.total));
        by_time.then_with(|| a.subject.cmp(&b.subject))
    });
    let rest = rows.split_off(rows.len().min(top.unwrap_or(usize::MAX)));
    for row in &mut rows {
        row.share = percent(row.times.total.into(), all);
    }
    Section {
        group,
        rows,
        left_out: (rest.len(), percent(total(&rest), all)),
    }
}

fn percent(part: u128, all: u128) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}
