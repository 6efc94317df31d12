//! UPD-01, L12 and RSV-05: how soon a change is served, and how to see the replica that has not heard of it.

use std::time::{Duration, Instant};

use serde_json::json;
use testbed::{Bed, dig};

use crate::api::{Watching, folder, metric, replace, until};
use crate::asking::{A, AAAA, NOERROR, NXDOMAIN, SRV, ask, udp};
use crate::product::{Namesake, PATIENCE};
use crate::scripted::Scripted;

pub(crate) const WEB: &str = r#"
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: web, namespace: shop}
spec: {type: ClusterSetIP, ips: ["10.96.7.7"], ports: [{name: http, port: 80, protocol: TCP}]}
"#;

/// A service with an address that is none.
pub(crate) const ODD: &str = r#"
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: odd, namespace: shop}
spec: {type: ClusterSetIP, ips: ["10.96.7.8", "None"], ports: []}
"#;

fn db(address: &str) -> String {
    format!(
        r#"
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {{name: db, namespace: shop}}
spec: {{type: Headless, ports: [{{name: pg, port: 5432}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: db-east
  namespace: shop
  labels: {{multicluster.kubernetes.io/service-name: db, multicluster.kubernetes.io/source-cluster: east}}
addressType: IPv4
ports: [{{name: pg, port: 5432}}]
endpoints:
- {{addresses: ["{address}"], hostname: db-0, conditions: {{ready: true}}}}
- {{addresses: ["10.1.0.12"], hostname: db-1, conditions: {{ready: true}}}}
"#
    )
}

const DB_0: &str = "db-0.east.db.shop.svc.clusterset.local.";
const DB: &str = "db.shop.svc.clusterset.local.";

#[tokio::test(flavor = "multi_thread")]
async fn case_upd_01_an_edit_in_a_folder_is_served_within_a_second_and_nothing_old_after_it() {
    let bed = Bed::new().unwrap();
    let objects = folder(&bed, &[("db.yaml", &db("10.1.0.11"))]);
    let server = Namesake::start(&bed, &["--from", &objects]).unwrap();
    server.wait_ready().await;
    let mut all = Vec::new();
    for round in 0..5 {
        let fresh = format!("10.1.1.{round}");
        replace(&bed, "db.yaml", &db(&fresh));
        let took =
            until("the new address", async || dig(server.dns, &[DB_0, "A"]).unwrap().data("A") == [&*fresh]).await;
        all.push(took);
        // Not one of the old addresses any more, by whatever name or transport; and nobody keeps them longer than 5 s.
        for more in ["+notcp", "+tcp"] {
            let both = dig(server.dns, &[more, DB, "A"]).unwrap();
            assert_eq!(both.data("A"), ["10.1.0.12", &*fresh], "{}", both.text);
            assert!(both.answer.iter().all(|record| record.ttl == 5), "{}", both.text);
        }
    }
    all.sort();
    println!("edits were served after {all:?}");
    assert!(all[2] < Duration::from_secs(1), "{all:?}: the folder is looked at every 250 ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn case_upd_01_dns_l12_an_event_of_the_api_server_is_served_at_once() {
    let api = Scripted::start().await;
    api.put("serviceimports", "db", json!({"spec": {"type": "Headless"}}));
    api.slice("db-east", "db", "10.1.0.11");
    let watching = Watching::ready(api, &[]).await;
    watching.asked("watch", "endpointslices", 1).await;
    let socket = udp(watching.dns);
    let mut took = Vec::new();
    for round in 0_u16..50 {
        let [high, low] = round.to_be_bytes();
        let began = Instant::now();
        watching.api.slice("db-east", "db", &format!("10.2.{high}.{low}"));
        // The name that an endpoint without hostname has: it is there as soon as the address is.
        let name = format!("10-2-{high}-{low}.east.db.shop.svc");
        while ask(&socket, round, &name, A).rcode != NOERROR {
            assert!(began.elapsed() < PATIENCE, "not served: {name}");
        }
        took.push(began.elapsed());
        if let Some(last) = round.checked_sub(1) {
            let [high, low] = last.to_be_bytes();
            let old = ask(&socket, round, &format!("10-2-{high}-{low}.east.db.shop.svc"), A);
            assert_eq!(old.rcode, NXDOMAIN, "the old one is gone with the same change");
        }
        tokio::time::sleep(Duration::from_millis(20)).await; // each change stands alone
    }
    took.sort();
    println!("from the event to the answer: median {:?}, slowest {:?}", took[25], took[49]);
    assert!(took[25] < Duration::from_millis(100), "the median: {:?}", took[25]);
}

/// What a replica says of itself: the serial, and how long ago it heard of a slice.
async fn version(replica: &Watching) -> (f64, f64) {
    let serial = metric(replica, r#"namesake_soa_serial{zone="clusterset.local."}"#).await;
    let age = metric(replica, r#"namesake_watch_last_event_age_seconds{resource="endpointslices"}"#).await;
    (serial, age)
}

fn soa(replica: &Watching) -> f64 {
    let soa = dig(replica.dns, &["clusterset.local.", "SOA"]).unwrap();
    soa.data("SOA")[0].split(' ').nth(2).unwrap().parse().unwrap()
}

/// The rcodes of names near and far, each asked often.
fn rcodes(replica: &Watching) -> Vec<(String, u16, u8)> {
    let socket = udp(replica.dns);
    let mut seen = Vec::new();
    for name in ["db.shop.svc", "10-1-0-11.east.db.shop.svc", "nope.shop.svc", "shop.svc", "_x._tcp.db.shop.svc"] {
        for qtype in [A, AAAA, SRV] {
            let all: Vec<u8> = (0..40).map(|id| ask(&socket, id, name, qtype).rcode).collect();
            assert!(all.iter().all(|rcode| *rcode == all[0]), "{name} {qtype} is answered by chance: {all:?}");
            seen.push((name.to_owned(), qtype, all[0]));
        }
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn case_rsv_05_a_replica_that_lags_shows_in_serial_and_age_and_converges() {
    let replica = async || {
        let api = Scripted::start().await;
        api.put("serviceimports", "db", json!({"spec": {"type": "Headless"}}));
        api.slice("db-east", "db", "10.1.0.11");
        let watching = Watching::ready(api, &[]).await;
        watching.asked("watch", "endpointslices", 1).await;
        watching
    };
    let (first, second) = (replica().await, replica().await);
    assert_eq!(rcodes(&first), rcodes(&second), "the same data, the same rcodes");

    // The second one's API server is behind: it has nothing to tell while the first one's has.
    tokio::time::sleep(Duration::from_secs(3)).await;
    first.api.slice("db-west", "db", "10.2.0.21");
    until("the first has it", async || ask(&udp(first.dns), 1, "db.shop.svc", A).answers == 2).await;
    until("its serial shows it", async || version(&first).await.0 > version(&second).await.0).await;
    let (ahead, behind) = (version(&first).await, version(&second).await);
    println!("serial and age: {ahead:?} and, behind, {behind:?}");
    assert!(ahead.0 >= behind.0 + 2.0, "the serial is the time of the last change");
    assert!(behind.1 >= 3.0 && ahead.1 < behind.1 - 1.0, "the age is that of the last event");
    assert_eq!((soa(&first), soa(&second)), (ahead.0, behind.0), "the metric is what the zone says");
    assert_eq!(rcodes(&first), rcodes(&second), "nobody gets a false negative from either");

    // It catches up; and with the next change that both hear of they say the same.
    let heard = Instant::now();
    second.api.slice("db-west", "db", "10.2.0.21");
    until("the second has it", async || ask(&udp(second.dns), 1, "db.shop.svc", A).answers == 2).await;
    until("its age shows it", async || version(&second).await.1 <= heard.elapsed().as_secs_f64()).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let since = version(&second).await.0;
    let began = Instant::now();
    for replica in [&first, &second] {
        replica.api.slice("db-north", "db", "10.3.0.31");
    }
    until("both have moved on", async || version(&first).await.0 > since && version(&second).await.0 > since).await;
    let took = began.elapsed().as_secs_f64();
    let (one, other) = (version(&first).await.0, version(&second).await.0);
    // They are the times at which each took it in: a second apart at most, and what a slow machine needed for both.
    assert!((one - other).abs() <= 1.0 + took, "serials of one change: {one} and {other}");
    assert_eq!(rcodes(&first), rcodes(&second));
}
