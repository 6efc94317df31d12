//! The two forms in which slices come: protobuf where the API server has it, JSON elsewhere.

use namesake::source::Trouble;

use super::form::Form;
use super::*;

async fn follows_slices(server: &Scripted) {
    server.slice("web-east", "web", "10.0.0.1");
    let mut following = Watching::live(server).await;
    assert_eq!(following.applied.addresses("shop/web-east"), ["10.0.0.1"]);
    server.slice("web-east", "web", "10.0.0.2");
    following.until(|a| a.addresses("shop/web-east") == ["10.0.0.2"]).await;
    server.delete("endpointslices", "web-east");
    following.until(|a| a.slices().is_empty()).await;
    assert_eq!(server.count("list", "endpointslices"), 1);
}

#[tokio::test]
async fn slices_come_in_protobuf() {
    let server = Scripted::start().await;
    follows_slices(&server).await;
    assert_eq!(server.script().forms, [("list", Form::Protobuf), ("watch", Form::Protobuf)]);
}

#[tokio::test]
async fn slices_come_in_json_from_a_server_that_has_nothing_else() {
    let server = Scripted::start().await;
    server.change(|s| s.json_alone = true);
    follows_slices(&server).await;
    assert_eq!(server.script().forms, [("list", Form::Json), ("watch", Form::Json)]);
}

#[tokio::test]
async fn a_server_that_learns_protobuf_between_list_and_watch_is_understood() {
    let server = Scripted::start().await;
    server.change(|s| s.json_alone = true);
    server.slice("web-east", "web", "10.0.0.1");
    let mut following = Watching::live(&server).await;
    server.change(|s| {
        s.json_alone = false;
        s.cut += 1;
    });
    server.slice("web-east", "web", "10.0.0.2");
    following.until(|a| a.addresses("shop/web-east") == ["10.0.0.2"]).await;
    assert_eq!(server.script().forms.last(), Some(&("watch", Form::Protobuf)));
    assert_eq!(server.count("list", "endpointslices"), 1);
}

/// A watch sends these octets while a slice went unseen: the trouble is named with these words, and a list tells of it.
async fn garbled(octets: &[u8], named: &str) {
    let server = Scripted::start().await;
    server.slice("web-east", "web", "10.0.0.1");
    let mut following = Watching::live(&server).await;
    server.lose("endpointslices", "web-east");
    server.change(|s| s.garbled = Some(octets.to_vec()));
    match following.until_trouble(Resource::Slices, "unreachable").await {
        Trouble::Unreachable { message } => assert!(message.contains(named), "{message}"),
        other => panic!("{other:?}"),
    }
    following.until(|a| a.slices().is_empty()).await;
    assert_eq!(server.count("list", "endpointslices"), 2);
    following.until_live().await;
}

/// What was garbled may have been an event: only a list can tell.
#[tokio::test]
async fn an_event_that_is_garbled_is_named_and_leads_to_a_new_list() {
    garbled(b"\0\0\0\x03\xff\xff\xff", "is no event: ").await;
}

/// Nothing can be known of where the next event begins, and another watch would bring the same.
#[tokio::test]
async fn a_length_that_can_not_be_is_named_and_leads_to_a_new_list() {
    garbled(b"{\"type\":\"ADDED\"", "an event of more than").await;
}

/// As from a cache between that takes no heed of `Accept`. What is known stays.
#[tokio::test]
async fn protobuf_that_nobody_asked_for_is_no_list() {
    let server = Scripted::start().await;
    server.import("web", "10.1.0.1");
    let mut following = Watching::live(&server).await;
    server.change(|s| {
        s.unasked = true;
        s.pranks.entry("serviceimports").or_default().push(Prank::GoneStatus);
        s.cut += 1;
    });
    match following.until_trouble(Resource::Imports, "unreachable").await {
        Trouble::Unreachable { message } => assert!(message.contains("no list"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(following.applied.imports(), ["shop/web"]);
    server.change(|s| s.unasked = false);
    following.until_live().await;
    assert_eq!(following.applied.imports(), ["shop/web"]);
}

#[tokio::test]
async fn a_refusal_in_protobuf_says_what_the_server_said() {
    let server = Scripted::start().await;
    server.change(|s| s.forbidden = vec![("list", Resource::Slices)]);
    let mut following = Watching::start(&server).await;
    match following.until_trouble(Resource::Slices, "forbidden").await {
        Trouble::Forbidden { verb, message, .. } => {
            assert_eq!(verb, "list");
            assert_eq!(message, "endpointslices is forbidden: User \"dns\" cannot list resource \"endpointslices\"");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.script().forms.first(), Some(&("list", Form::Protobuf)));
}
