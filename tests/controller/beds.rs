//! The clusters that tests share. They end with the process of the tests.

use testbed::ClusterOptions;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::clusterset::place::text;
use crate::clusterset::{ACCOUNT, Clusterset, Controller, PATIENCE, Place, until};

/// Three clusters and a controller that everybody may use, and nobody may harm.
pub struct Calm {
    pub set: Clusterset,
    pub controller: Controller,
}

/// `cluster-a` is as any other; `cluster-b` knows less of trafficDistribution; `cluster-c` has both IP families.
pub async fn calm() -> &'static Calm {
    static CALM: OnceCell<Calm> = OnceCell::const_new();
    CALM.get_or_init(async || {
        let older = ["--emulated-version=1.34", "--feature-gates=PreferSameTrafficDistribution=false"];
        let older = ClusterOptions { api_args: older.map(str::to_owned).to_vec(), ..ClusterOptions::default() };
        let both = ClusterOptions { dual_stack: true, ..ClusterOptions::default() };
        let set = vec![("cluster-a", ClusterOptions::default()), ("cluster-b", older), ("cluster-c", both)];
        let set = Clusterset::start(set).await;
        let controller = Controller::start(&set.bed, set.as_members()).await;
        Calm { set, controller }
    })
    .await
}

static FIVE: OnceCell<Mutex<Clusterset>> = OnceCell::const_new();
static THREE: OnceCell<Mutex<Clusterset>> = OnceCell::const_new();

async fn started(bed: &'static OnceCell<Mutex<Clusterset>>, names: &[&'static str]) -> &'static Mutex<Clusterset> {
    bed.get_or_init(async || {
        let wanted = names.iter().map(|name| (*name, ClusterOptions::default()));
        Mutex::new(Clusterset::start(wanted.collect()).await)
    })
    .await
}

/// Five clusters for one test at a time, which brings its own controller and heals what it has broken.
pub async fn rough() -> MutexGuard<'static, Clusterset> {
    let set = started(&FIVE, &["c1", "c2", "c3", "c4", "c5"]).await.lock().await;
    healed(set).await
}

/// The same for a test that needs only the first three: whichever bed is free.
pub async fn rough_three() -> MutexGuard<'static, Clusterset> {
    let three = started(&THREE, &["c1", "c2", "c3"]).await;
    let set = match FIVE.get() {
        Some(five) => tokio::select! {
            biased;
            set = three.lock() => set,
            set = five.lock() => set,
        },
        None => three.lock().await,
    };
    healed(set).await
}

/// A test that failed may have left something hung.
async fn healed(set: MutexGuard<'static, Clusterset>) -> MutexGuard<'static, Clusterset> {
    for cluster in &set.clusters {
        cluster.cont().unwrap();
        cluster.wait_ready().await.unwrap();
    }
    set
}

/// Removes what earlier tests have left, and waits until it is gone: for tests that count everything.
pub async fn cleared(set: &Clusterset) {
    let ours = ["default", "kube-system", "kube-public", "kube-node-lease", ACCOUNT.0];
    for cluster in &set.clusters {
        let place = Place::new(cluster, "default");
        until("earlier namespaces are gone", PATIENCE * 2, async || {
            let list = place.send("GET", "/api/v1/namespaces", None).await.unwrap();
            let names = list["items"].as_array().unwrap().iter().map(|item| text(&item["metadata"]["name"]));
            let left: Vec<_> = names.filter(|name| !ours.contains(name)).map(str::to_owned).collect();
            for name in &left {
                place.beside(name).delete_namespace().await;
            }
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
    }
}
