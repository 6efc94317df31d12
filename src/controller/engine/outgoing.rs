//! Plans → jobs, and what came of them → the world.

use std::collections::BTreeMap;
use std::time::Instant;

use tracing::{info, warn};

use super::{Ended, Engine, now};
use crate::controller::apply::{Applier, Done, Job, Target, Trouble};
use crate::model::{ClusterId, ServiceKey};
use crate::reconcile::observed::Failure;
use crate::reconcile::plan::{Change, Event, Plan, Subject};
use crate::reconcile::plan_service;

/// How many ended jobs are taken in at a time.
const TURN: usize = 128;

impl Engine {
    /// Puts a plan into the outboxes. Where a job of the same service is under way, it is planned again after that.
    pub(super) fn put(&mut self, key: &ServiceKey, plan: Plan) {
        let target = Target::Service(key.clone());
        let mut jobs = self.jobs(&target, plan);
        let (mut open, mut mended) = (false, Vec::new());
        for (cluster, following) in &mut self.members {
            let job = jobs.remove(cluster);
            if !following.outbox.is_running(&target) {
                if job.is_none() && following.failing.contains(&target) {
                    mended.push(cluster.clone());
                }
                following.outbox.put(target.clone(), job);
            }
            open |= following.outbox.holds(&target) && !following.failing.contains(&target);
        }
        if !open
            && let Some((since, wrote)) = self.changed.remove(key)
            && wrote
        {
            self.metrics.propagated(since.elapsed().as_secs_f64());
        }
        // What could not be written is not wanted any more.
        for cluster in mended {
            self.note(&cluster, &target, None);
        }
    }

    /// A plan's changes by member.
    pub(super) fn jobs(&self, target: &Target, plan: Plan) -> BTreeMap<ClusterId, Job> {
        let mut jobs: BTreeMap<ClusterId, Job> = BTreeMap::new();
        for Change { cluster, action, reason } in plan.changes {
            let job = jobs.entry(cluster.clone()).or_insert_with(|| Job {
                target: target.clone(),
                changes: Vec::new(),
                events: Vec::new(),
            });
            job.changes.push(Change { cluster, action, reason });
        }
        for event in plan.events {
            let uid = self.uid(&event);
            if let Some(job) = jobs.get_mut(&event.cluster) {
                job.events.push((event, uid));
            }
        }
        jobs
    }

    /// The uid of the object that an event is about, where it is there already.
    fn uid(&self, event: &Event) -> Option<Box<str>> {
        let member = self.world.members().get(&event.cluster)?;
        let meta = match &event.subject {
            Subject::Export(key) => &member.local(key)?.export.as_ref()?.meta,
            Subject::Import(key) => &member.local(key)?.import.as_ref()?.meta,
        };
        Some(meta.id.uid.clone())
    }

    /// Starts the jobs whose turn it is.
    pub(super) fn dispatch(&mut self) {
        if !self.settled || !*self.leading.borrow() {
            return;
        }
        let clusters: Vec<_> = self.members.keys().cloned().collect();
        for cluster in clusters {
            while let Some((target, job)) = self.next(&cluster) {
                let job = job.or_else(|| self.plan_for(&cluster, &target));
                self.start(&cluster, target, job);
            }
        }
    }

    fn next(&mut self, cluster: &ClusterId) -> Option<(Target, Option<Job>)> {
        let following = self.members.get_mut(cluster)?;
        following.live.as_ref()?.version?;
        following.outbox.next(Instant::now())
    }

    /// The job of one member alone: of more than a few, only the targets were kept.
    fn plan_for(&mut self, cluster: &ClusterId, target: &Target) -> Option<Job> {
        let plan = match target {
            Target::Service(key) => plan_service(&self.world, key, &self.settings, now()).plan,
            Target::Namespace(name) => crate::reconcile::plan_namespace(&self.world, name, &self.settings, now()),
        };
        self.jobs(target, plan).remove(cluster)
    }

    fn start(&mut self, cluster: &ClusterId, target: Target, job: Option<Job>) {
        let Some(following) = self.members.get_mut(cluster) else { return };
        let (Some(job), Some(live)) = (job, &following.live) else {
            following.outbox.dropped(&target);
            return;
        };
        let Some(version) = live.version else { return };
        let applier = Applier {
            cluster: cluster.clone(),
            connection: live.member.connection.clone(),
            version,
            leading: self.leading.clone(),
            status: self.status.clone(),
            metrics: self.metrics.clone(),
        };
        following.outbox.started(&job);
        let (serial, cluster, ended) = (following.serial, cluster.clone(), self.ended.0.clone());
        following.tasks.spawn(async move {
            // A bug in one job must not leave its service waiting for ever.
            let done = tokio::spawn(async move { applier.run(job).await }).await.unwrap_or_else(|error| Done {
                target,
                seen: Vec::new(),
                trouble: Some(Trouble::Refused(format!("the job failed: {error}; please report this"))),
                wrote: false,
            });
            // Nobody is left to tell when the loop has ended.
            let _ = ended.send(Ended { cluster, serial, done }).await;
        });
    }

    /// When a job that waits for a time may go out.
    pub(super) fn wake(&self) -> Option<Instant> {
        if !*self.leading.borrow() || !self.settled {
            return None;
        }
        let now = Instant::now();
        self.members
            .values()
            .filter(|it| it.live.as_ref().is_some_and(|live| live.version.is_some()))
            .filter_map(|it| it.outbox.wake(now))
            .min()
    }

    /// Takes in what came of this job, and of others that wait.
    pub(super) fn jobs_ended(&mut self, first: Ended) {
        let mut next = Some(first);
        for _ in 0..TURN {
            let Some(ended) = next else { return };
            self.job_ended(ended);
            next = self.ended.1.try_recv().ok();
        }
        // The last one was taken out, and is to be taken in.
        next.into_iter().for_each(|ended| self.job_ended(ended));
    }

    /// Takes in what came of a job.
    fn job_ended(&mut self, ended: Ended) {
        let Ended { cluster, serial, done } = ended;
        let Some(following) = self.members.get_mut(&cluster).filter(|it| it.serial == serial) else { return };
        while following.tasks.try_join_next().is_some() {}
        let again = following.outbox.done(&done.target, done.trouble.as_ref(), done.wrote, Instant::now());
        if let Some(times) = again {
            let target = &done.target;
            warn!(
                %cluster,
                "{target}: the same has been written {times} times in a short time: another controller changes it back; \
                 it is written more slowly now. Only one controller of the Multi-Cluster Services API may run in a \
                 cluster, and nobody else may edit what carries app.kubernetes.io/managed-by=namesake"
            );
        }
        let mut dirty = Vec::new();
        for (object, version) in done.seen {
            if following.echoes.wrote(&object, version) {
                dirty.push(object.tell(&mut self.world, &cluster));
            }
        }
        if !following.outbox.is_busy() {
            following.echoes.rest();
        }
        dirty.into_iter().for_each(|dirty| self.mark(dirty));
        if let Target::Service(key) = &done.target {
            if done.wrote
                && let Some((_, wrote)) = self.changed.get_mut(key)
            {
                *wrote = true;
            }
            self.dirty.push(key.clone());
        }
        self.note(&cluster, &done.target, done.trouble);
    }

    /// Remembers a failure, so that conditions can say it, or its end.
    fn note(&mut self, cluster: &ClusterId, target: &Target, trouble: Option<Trouble>) {
        let Some(following) = self.members.get_mut(cluster) else { return };
        let message = match &trouble {
            None => {
                if following.failing.remove(target) {
                    info!(%cluster, "{target} is as it should be again");
                }
                if following.failing.is_empty() {
                    following.last_error = None;
                }
                None
            }
            Some(Trouble::NotLeading | Trouble::NamespaceGone(_) | Trouble::Gone) => return,
            Some(trouble) => {
                let message = trouble.message().to_owned();
                let new = following.failing.insert(target.clone());
                if new && !matches!(trouble, Trouble::Conflict(_)) {
                    warn!(%cluster, "{target} can't be written: {message}");
                }
                following.last_error = Some(message.clone());
                Some(message)
            }
        };
        let Target::Service(key) = target else { return };
        let before = self.world.members().get(cluster).and_then(|member| member.local(key)?.failure.as_ref());
        let since = before.map_or_else(now, |failure| failure.since);
        let failure = message.map(|message| Failure { since, message: message.into() });
        let dirty = self.world.set_failure(cluster, key, failure);
        self.mark(dirty);
        if let Some(Trouble::Field((field, value), message)) = trouble {
            warn!(%cluster, "{key}: {message}; it is left out of the derived Service there");
            let dirty = self.world.set_refused(cluster, key, field, &value);
            self.mark(dirty);
        }
    }
}
