//! Datagrams of one address family: who sent them, and to which of our addresses.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use nix::cmsg_space;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, SockaddrIn, SockaddrIn6, SockaddrLike};

/// What differs between IPv4 and IPv6 sockets. A type, not a value, so that the loop is compiled for each.
pub(super) trait Family {
    /// A client's address as the kernel writes it.
    type Address: SockaddrLike + Copy + Debug;
    /// One of our addresses, to which a datagram was sent and from which its reply must leave.
    type Local: Copy + PartialEq + Debug;
    /// The kernel's structure for it.
    type Info;

    /// Who sent the datagram; an IPv4-mapped address is the IPv4 address it maps.
    fn peer(address: &Self::Address) -> SocketAddr;
    /// Room for one control message that carries [`Self::Local`], no more: a longer one is EINVAL when sending.
    fn control_space() -> Vec<u8>;
    /// The address in a control message, if it holds one.
    fn local(message: &ControlMessageOwned) -> Option<Self::Local>;
    /// The kernel's structure that makes a reply leave from `local`.
    fn info(local: Self::Local) -> Self::Info;
    /// The control message of `info`.
    fn control(info: &Self::Info) -> ControlMessage<'_>;
}

/// A socket that receives IPv4.
pub(super) enum V4 {}

/// A socket that receives IPv6, and IPv4 as mapped addresses unless V6ONLY is set.
pub(super) enum V6 {}

impl Family for V4 {
    type Address = SockaddrIn;
    type Local = Ipv4Addr;
    type Info = in_pktinfo;

    fn peer(address: &SockaddrIn) -> SocketAddr {
        SocketAddrV4::from(*address).into()
    }

    fn control_space() -> Vec<u8> {
        cmsg_space!(in_pktinfo)
    }

    fn local(message: &ControlMessageOwned) -> Option<Ipv4Addr> {
        match message {
            // Not `ipi_addr`, which is the header's destination: that may be a broadcast address, and cannot be a source.
            ControlMessageOwned::Ipv4PacketInfo(info) => Some(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes())),
            _ => None,
        }
    }

    fn info(local: Ipv4Addr) -> in_pktinfo {
        in_pktinfo {
            // Zero: the routing table chooses the interface, since replies may leave by another one.
            ipi_ifindex: 0,
            ipi_spec_dst: in_addr { s_addr: u32::from_ne_bytes(local.octets()) },
            ipi_addr: in_addr { s_addr: 0 },
        }
    }

    fn control(info: &in_pktinfo) -> ControlMessage<'_> {
        ControlMessage::Ipv4PacketInfo(info)
    }
}

impl Family for V6 {
    type Address = SockaddrIn6;
    type Local = (Ipv6Addr, u32);
    type Info = in6_pktinfo;

    fn peer(address: &SockaddrIn6) -> SocketAddr {
        let address = SocketAddrV6::from(*address);
        match address.ip().to_canonical() {
            IpAddr::V4(mapped) => SocketAddrV4::new(mapped, address.port()).into(),
            IpAddr::V6(_) => address.into(),
        }
    }

    fn control_space() -> Vec<u8> {
        cmsg_space!(in6_pktinfo)
    }

    fn local(message: &ControlMessageOwned) -> Option<(Ipv6Addr, u32)> {
        match message {
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                let address = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                // Every link has its own fe80::/10, so there the interface is part of the address. Elsewhere the
                // routing table chooses.
                let interface = if address.is_unicast_link_local() { info.ipi6_ifindex } else { 0 };
                Some((address, interface))
            }
            _ => None,
        }
    }

    fn info((address, interface): (Ipv6Addr, u32)) -> in6_pktinfo {
        in6_pktinfo { ipi6_addr: in6_addr { s6_addr: address.octets() }, ipi6_ifindex: interface }
    }

    fn control(info: &in6_pktinfo) -> ControlMessage<'_> {
        ControlMessage::Ipv6PacketInfo(info)
    }
}
