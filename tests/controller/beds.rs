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

/// Five clusters for one test at a time, which brings its own controller and heals what it has broken.
pub async fn rough() -> MutexGuard<'static, Clusterset> {
    static ROUGH: OnceCell<Mutex<Clusterset>> = OnceCell::const_new();
    let rough = ROUGH.get_or_init(async || {
        let names = ["c1", "c2", "c3", "c4", "c5"];
        Mutex::new(Clusterset::start(names.map(|name| (name, ClusterOptions::default())).to_vec()).await)
    });
    let set = rough.await.lock().await;
    // A test that failed may have left something hung.
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
