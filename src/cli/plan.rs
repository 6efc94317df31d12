//! `namesake plan`: what the controller would write, for people, for GitOps, and for the day a cluster dies.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ValueEnum};

use super::preview::Look;
use super::sandbox::DEFAULT_DIR;
use super::{Exit, complain, print};
use crate::config::controller::LiveClusters;
use crate::model::{ClusterId, ServiceKey};
use crate::preview::{self, Clusterset, Line, Settled, Telling};
use crate::reconcile::plan::Action;
use crate::reconcile::{ServicePlan, Settings, plan_all};
use crate::source::clusters;

pub(super) const ABOUT: &str = "\
Say what the controller would write into clusters, and what their exports disagree about.

Each sub-folder of DIR is a cluster, as for `namesake sandbox`; or the clusters are those that the flags of `namesake
controller` name, each read once. Nothing is written. Services that neither change nor conflict are not named.";

pub(super) const EXAMPLES: &str = "\
Examples:
  namesake plan clusters                              what would change, in words
  namesake plan clusters --fail-on-conflict           the same as a check of a pull request
  namesake plan clusters -o yaml --cluster east       the objects for one cluster, to commit or to apply
  namesake plan clusters --without east               what would be lost if this cluster died
  namesake plan clusters --families union             the same with another policy
  namesake plan --member east=east --member b=west    the clusters of two contexts of your kubeconfig
  namesake plan --hub hub                             the clusters that joined this hub

A line that begins with + says that something is new, with ~ that it changes, with - that it goes, with ! that it is
wrong. Clusterset IPs are given by each cluster, so a ServiceImport has none before its derived Service is there.

Exit codes:
  0  planned, whether something changes or not
  1  the folder or a cluster can't be read: the message says which and why
  2  there are conflicts and --fail-on-conflict was given, or the flags are wrong";

/// The arguments.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    /// The folder with a sub-folder for each cluster [default: config/sandbox]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,

    /// What to print
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,

    /// Say only what is written to this cluster
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,

    /// End with 2 where exports conflict
    #[arg(long, action = ArgAction::SetTrue)]
    fail_on_conflict: bool,

    /// Say what would be lost if this cluster died
    #[arg(long, value_name = "CLUSTER", conflicts_with_all = ["output", "cluster"])]
    without: Option<String>,

    #[command(flatten)]
    look: Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Lines for people
    Text,
    /// One applicable object a document, for GitOps
    Yaml,
}

/// Plans.
pub(super) fn command(args: &Args) -> Exit {
    let (set, hints, place) = match clusterset(args) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let known = |flag: &str, name: Option<&String>| {
        let Some(name) = name else { return Ok(None) };
        let id = ClusterId::new(name).filter(|id| set.world().members().contains_key(id));
        id.map(Some).ok_or_else(|| {
            let known = set.world().members().keys().map(ClusterId::as_str).collect::<Vec<_>>().join(", ");
            complain(&format_args!("{flag} {name}: there is no such cluster{place}; there are {known}"));
            Exit::Usage
        })
    };
    let asked = known("--without", args.without.as_ref())
        .and_then(|without| known("--cluster", args.cluster.as_ref()).map(|only| (without, only)));
    match asked {
        Ok((without, only)) => plan(set, &hints, args, without.as_ref(), only.as_ref()),
        Err(exit) => exit,
    }
}

/// The clusters that are asked for, what a person may want to know of them, and where they are.
fn clusterset(args: &Args) -> Result<(Clusterset, Vec<String>, String), Exit> {
    let (preview, patience) = match (args.look.checked(), args.look.patience()) {
        (Ok(preview), Ok(patience)) => (preview, patience),
        (preview, patience) => {
            if let Err(error) = preview {
                complain(&error);
            }
            if let Err(error) = patience {
                complain(&error);
            }
            return Err(Exit::Usage);
        }
    };
    let dir = match (&args.dir, args.look.named(), preview.clusters) {
        (Some(dir), Some(flag), _) => {
            let dir = dir.display();
            complain(&format_args!(
                "{flag}: {dir} is given too, and both say where the clusters are; keep one of them"
            ));
            return Err(Exit::Usage);
        }
        (None, _, Some(clusters)) => return live(clusters, preview.policy, patience),
        (Some(dir), None, _) => dir.clone(),
        (None, _, None) => DEFAULT_DIR.into(),
    };
    let clusters = clusters::read(&dir).map_err(|error| {
        complain(&error);
        Exit::Failure
    })?;
    let hints = clusters.0.values().flat_map(|cluster| cluster.hints.clone()).collect();
    let mut set = Clusterset::new(preview.policy);
    set.tell(clusters);
    Ok((set, hints, format!(" in {}", dir.display())))
}

/// Clusters that run.
fn live(
    clusters: LiveClusters,
    policy: Settings,
    patience: Duration,
) -> Result<(Clusterset, Vec<String>, String), Exit> {
    let fail = |error: &dyn Display| {
        complain(error);
        Exit::Failure
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| fail(&format_args!("no runtime: {error}; raise the limits of this process")))?;
    let LiveClusters { hub, members } = clusters;
    let read = runtime.block_on(preview::live(members, hub, policy.auto_export.clone(), patience));
    let preview::Live { world, hints } = read.map_err(|error| fail(&error))?;
    Ok((Clusterset::of(world, policy), hints, String::new()))
}

fn plan(
    mut set: Clusterset,
    hints: &[String],
    args: &Args,
    without: Option<&ClusterId>,
    only: Option<&ClusterId>,
) -> Exit {
    let now = preview::now();
    let settings = set.settings().clone();
    let before = set.world().clone();
    let first: Vec<_> = plan_all(&before, &settings, now).collect();
    let conflicts = first.iter().map(|plan| plan.conflicts.len()).sum();
    let Settled { plans, .. } = match set.settle(now) {
        Ok(settled) => settled,
        Err(error) => {
            complain(&format_args!(
                "a simulated API server refuses a write: {error}; please report this with the folder"
            ));
            return Exit::Failure;
        }
    };
    let hints: String = hints.iter().map(|hint| format!("# {hint}\n")).collect();
    let printed = if let Some(cluster) = without {
        print(&preview::loss(set.world(), cluster).to_string())
    } else if args.output == Output::Yaml {
        match preview::documents(&first, set.told(), only) {
            Ok(yaml) => print(&format!("{hints}{yaml}")),
            Err(error) => {
                complain(&error);
                Exit::Failure
            }
        }
    } else {
        let telling = Telling::Planned { only };
        let lines = preview::differences(&before, set.world(), &plans, telling, &settings, now);
        print(&format!("{hints}{}", text(&lines, &plans, only, conflicts)))
    };
    if printed != Exit::Ok || !args.fail_on_conflict || conflicts == 0 {
        return printed;
    }
    // The text has told them already.
    if without.is_some() || args.output != Output::Text {
        for plan in &first {
            for conflict in &plan.conflicts {
                complain(&format_args!("{}: {}: {}", plan.key, conflict.property.reason(), conflict.message));
            }
        }
    }
    Exit::Conflict
}

/// The lines, and a sum under them.
fn text(lines: &[Line], plans: &[ServicePlan], only: Option<&ClusterId>, conflicts: usize) -> String {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let Sum { created, changed, deleted } = sum(plans, only);
    match (created, changed, deleted) {
        (0, 0, 0) => text.push_str("no objects to write; "),
        _ => text
            .push_str(&format!("{} to create, {changed} to change, {deleted} to delete; ", plural(created, "object"))),
    }
    let conflicts = if conflicts == 0 { "no conflicts".to_owned() } else { plural(conflicts, "conflict") };
    text.push_str(&format!("{conflicts}\n"));
    text
}

/// How many objects are written, without statuses.
#[derive(Debug, Default)]
struct Sum {
    created: usize,
    changed: usize,
    deleted: usize,
}

fn sum(plans: &[ServicePlan], only: Option<&ClusterId>) -> Sum {
    // An object that is deleted and made anew changes; one that is made and completed is made.
    let mut objects: BTreeMap<(&ClusterId, &str, String), (bool, bool)> = BTreeMap::new();
    let changes = plans.iter().flat_map(|plan| &plan.plan.changes);
    for change in changes.filter(|change| only.is_none_or(|only| *only == change.cluster)) {
        let Some((kind, name, is_new, stays)) = object(&change.action) else { continue };
        let object = objects.entry((&change.cluster, kind, name)).or_insert((is_new, stays));
        object.1 = stays;
    }
    let mut sum = Sum::default();
    for (is_new, stays) in objects.into_values() {
        match (is_new, stays) {
            (true, true) => sum.created += 1,
            (false, true) => sum.changed += 1,
            (_, false) => sum.deleted += 1,
        }
    }
    sum
}

/// The object that an action is about: its kind and name, whether it was not there before, and whether it is after.
fn object(action: &Action) -> Option<(&'static str, String, bool, bool)> {
    let own = |key: &ServiceKey, name: &str| format!("{}/{name}", key.namespace);
    Some(match action {
        Action::CreateNamespace(name) => ("Namespace", name.to_string(), true, true),
        Action::DeleteNamespace(name, _) => ("Namespace", name.to_string(), false, false),
        Action::CreateExport(key) => ("ServiceExport", key.to_string(), true, true),
        Action::DeleteExport(key, _) => ("ServiceExport", key.to_string(), false, false),
        Action::ApplyImport(it) => ("ServiceImport", it.key.to_string(), it.existing.is_none(), true),
        Action::DeleteImport(key, _) => ("ServiceImport", key.to_string(), false, false),
        Action::ApplyService(it) => ("Service", own(&it.key, it.name.as_str()), it.existing.is_none(), true),
        Action::DeleteService(key, _) => ("Service", key.to_string(), false, false),
        Action::ApplySlice(it) => ("EndpointSlice", own(&it.key, &it.name), it.existing.is_none(), true),
        Action::DeleteSlice(key, name, _) => ("EndpointSlice", own(key, name), false, false),
        Action::ApplyImportStatus(..) | Action::ApplyExportStatus(..) => return None,
    })
}
