use super::Origin;
use super::identity::{Claim, IdRules, Properties};
use super::refusal::{BadId, Refusal};
use super::registry::{Judged, Registry, Way};
use super::secrets::Convention;

impl Way for &'static str {
    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

fn secret(name: &str) -> Origin {
    found_by(Convention::Labelled, name)
}

fn found_by(convention: Convention, name: &str) -> Origin {
    Origin::Secret { convention, namespace: "hub".to_owned(), name: name.to_owned(), key: None }
}

fn claim(setting: Option<&str>) -> Claim {
    Claim { setting: setting.map(str::to_owned), fallback: None, remedy: "" }
}

fn says(cluster: &str) -> Properties {
    Properties { cluster: Some(cluster.to_owned()), set: None }
}

/// What changed, in short.
fn judge(registry: &mut Registry<&'static str>) -> Vec<String> {
    let short = |judged: &Judged<&str>| match judged {
        Judged::Present(id, origin, way) => format!("{id} by {way} ({origin})"),
        Judged::Unusable(id, _, why) => format!("{id} unusable: {}", kind(why)),
        Judged::Left(id) => format!("{id} left"),
        Judged::Refused(origin, Some(why)) => format!("{origin} refused: {}", kind(why)),
        Judged::Refused(origin, None) => format!("{origin} mended"),
        Judged::Complete(complete) => format!("complete: {complete}"),
    };
    registry.judge(true).iter().map(short).collect()
}

fn kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Duplicate { .. } => "duplicate",
        Refusal::Id(BadId::Disagreement { .. }) => "disagreement",
        Refusal::Id(_) => "id",
        Refusal::Kubeconfig(_) => "kubeconfig",
        Refusal::Connecting => "connecting",
        Refusal::Unidentified(_) => "unidentified",
        _ => "other",
    }
}

fn registry() -> Registry<&'static str> {
    Registry::new(IdRules::default())
}

#[test]
fn members_come_change_and_go() {
    let mut registry = registry();
    registry.set(secret("a"), 1, claim(Some("east")), Ok("way 1"));
    assert_eq!(judge(&mut registry), ["east by way 1 (Secret hub/a)", "complete: true"]);
    assert_eq!(judge(&mut registry), [""; 0], "nothing changed");
    registry.set(secret("a"), 1, claim(Some("east")), Ok("way 2"));
    assert_eq!(judge(&mut registry), ["east by way 2 (Secret hub/a)"]);
    registry.remove(&secret("a"));
    assert_eq!(judge(&mut registry), ["east left"]);
}

#[test]
fn a_broken_registration_is_not_a_leave() {
    let mut registry = registry();
    registry.set(secret("a"), 1, claim(Some("east")), Ok("way"));
    registry.set(secret("b"), 1, claim(None), Ok("way b"));
    registry.set_properties(&secret("b"), says("west"));
    judge(&mut registry);
    for name in ["a", "b"] {
        let setting = (name == "a").then_some("east");
        registry.set(secret(name), 1, claim(setting), Err(Refusal::NoClient("bad".to_owned())));
    }
    assert_eq!(judge(&mut registry), ["east unusable: other", "west unusable: other"]);
}

#[test]
fn mcs_r91_nobody_has_left_before_everybody_has_said_who_he_is() {
    let mut registry = registry();
    registry.set(secret("a"), 1, claim(Some("east")), Ok("way"));
    registry.set(secret("b"), 1, claim(None), Ok("way"));
    assert_eq!(judge(&mut registry), ["east by way (Secret hub/a)", "Secret hub/b refused: connecting"]);
    registry.set_unheard(&secret("b"), "no answer".to_owned());
    assert_eq!(judge(&mut registry), ["Secret hub/b refused: unidentified"]);
    registry.set_properties(&secret("b"), says("west"));
    assert_eq!(judge(&mut registry), ["west by way (Secret hub/b)", "Secret hub/b mended", "complete: true"]);
    registry.set(secret("c"), 1, claim(None), Ok("way"));
    assert_eq!(judge(&mut registry), ["complete: false", "Secret hub/c refused: connecting"]);
    assert!(registry.judge(false).iter().all(|judged| !matches!(judged, Judged::Complete(true))));
}

#[test]
fn mcs_r91_a_changed_property_is_leave_and_join() {
    let mut registry = registry();
    registry.set(secret("a"), 1, claim(None), Ok("way"));
    registry.set_properties(&secret("a"), says("east"));
    judge(&mut registry);
    registry.set_properties(&secret("a"), says("west"));
    assert_eq!(judge(&mut registry), ["east left", "west by way (Secret hub/a)"]);
}

#[test]
fn mcs_r91_a_disagreement_stops_its_use_and_loses_nothing() {
    let mut registry = registry();
    registry.set(secret("a"), 1, claim(Some("east")), Ok("way"));
    judge(&mut registry);
    registry.set_properties(&secret("a"), says("west"));
    assert_eq!(judge(&mut registry), ["east unusable: disagreement"]);
    registry.set_properties(&secret("a"), says("east"));
    assert_eq!(judge(&mut registry), ["east by way (Secret hub/a)"]);
}

#[test]
fn mcs_r91_of_two_with_one_id_the_younger_is_refused_whoever_comes_first() {
    for order in [["z-old", "a-young"], ["a-young", "z-old"]] {
        let mut registry = registry();
        for name in order {
            registry.set(secret(name), if name == "z-old" { 1 } else { 2 }, claim(Some("east")), Ok("way"));
        }
        assert_eq!(
            judge(&mut registry),
            ["east by way (Secret hub/z-old)", "Secret hub/a-young refused: duplicate", "complete: true"],
        );
        // Where the older one goes, the younger takes its place.
        registry.remove(&secret("z-old"));
        assert_eq!(judge(&mut registry), ["east by way (Secret hub/a-young)", "Secret hub/a-young mended"]);
    }
}

#[test]
fn mcs_r91_the_operators_own_are_older_than_anything_in_the_hub() {
    let mut registry = registry();
    registry.set(secret("a"), -5, claim(Some("east")), Ok("hub"));
    let own = Origin::Context { file: "/kubeconfig".into(), context: "east".to_owned() };
    registry.set(own, 0, claim(Some("east")), Ok("own"));
    let judged = judge(&mut registry);
    assert_eq!(judged[0], "east by own (context \"east\" of /kubeconfig)");
    assert_eq!(judged[1], "Secret hub/a refused: duplicate");
}

#[test]
fn an_unusable_elder_still_has_the_id() {
    let mut registry = registry();
    registry.set(secret("a"), 1, claim(Some("east")), Err(Refusal::Connecting));
    registry.set(secret("b"), 2, claim(Some("east")), Ok("way"));
    assert_eq!(judge(&mut registry)[..2], ["east unusable: connecting", "Secret hub/b refused: duplicate"]);
}

#[test]
fn one_secret_found_by_two_conventions_is_one_candidate() {
    let mut registry = registry();
    registry.set(found_by(Convention::Labelled, "a"), 1, claim(Some("east")), Ok("way"));
    registry.set(found_by(Convention::ClusterApi, "a"), 1, claim(Some("east")), Ok("way"));
    assert_eq!(judge(&mut registry), ["east by way (Secret hub/a)", "complete: true"]);
}

#[test]
fn every_refusal_says_what_to_do() {
    let bad = Refusal::Duplicate { id: crate::model::ClusterId::new("east").unwrap(), by: secret("a").to_string() };
    assert_eq!(
        bad.to_string(),
        "the id east is that of Secret hub/a already, which is older; give this cluster another id, or remove one of them"
    );
}
