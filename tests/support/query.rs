//! Queries as bytes, made without any DNS library.

use namesake::dns::Transport;

/// An OPT record to send.
#[derive(Debug, Clone)]
pub struct Edns {
    pub size: u16,
    pub version: u8,
    pub dnssec_ok: bool,
    pub options: Vec<(u16, Vec<u8>)>,
}

impl Edns {
    /// Version 0, no DO, no options.
    pub fn size(size: u16) -> Self {
        Self { size, version: 0, dnssec_ok: false, options: Vec::new() }
    }

    pub fn version(mut self, version: u8) -> Self {
        self.version = version;
        self
    }

    pub fn dnssec_ok(mut self) -> Self {
        self.dnssec_ok = true;
        self
    }

    pub fn option(mut self, code: u16, data: &[u8]) -> Self {
        self.options.push((code, data.to_vec()));
        self
    }

    /// The record, as it stands in the additional section.
    pub fn wire(&self) -> Vec<u8> {
        let mut rdata = Vec::new();
        for (code, data) in &self.options {
            rdata.extend(code.to_be_bytes());
            rdata.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            rdata.extend(data);
        }
        let ttl = u32::from(self.version) << 16 | if self.dnssec_ok { 0x8000 } else { 0 };
        record(&[], super::OPT, self.size, ttl, &rdata)
    }
}

/// A record's bytes, without compression.
pub fn record(owner: &[&[u8]], rtype: u16, class: u16, ttl: u32, rdata: &[u8]) -> Vec<u8> {
    let mut bytes = name_wire(owner);
    bytes.extend(rtype.to_be_bytes());
    bytes.extend(class.to_be_bytes());
    bytes.extend(ttl.to_be_bytes());
    bytes.extend(u16::try_from(rdata.len()).unwrap().to_be_bytes());
    bytes.extend(rdata);
    bytes
}

fn name_wire<L: AsRef<[u8]>>(labels: &[L]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in labels {
        bytes.push(u8::try_from(label.as_ref().len()).unwrap());
        bytes.extend(label.as_ref());
    }
    bytes.push(0);
    bytes
}

/// The labels of a name in text, without escapes; the final dot may be missing, "" and "." are the root.
pub fn labels(name: &str) -> Vec<Vec<u8>> {
    name.trim_end_matches('.').split('.').filter(|l| !l.is_empty()).map(|l| l.as_bytes().to_vec()).collect()
}

/// A query and how it is sent.
#[derive(Debug, Clone)]
pub struct Ask {
    pub id: u16,
    pub opcode: u8,
    pub recursion_desired: bool,
    pub checking_disabled: bool,
    pub authentic_data: bool,
    pub name: Vec<Vec<u8>>,
    pub qtype: u16,
    pub qclass: u16,
    pub edns: Option<Edns>,
    pub transport: Transport,
    /// Records by section, raw, in front of the OPT.
    pub answers: Vec<Vec<u8>>,
    pub authorities: Vec<Vec<u8>>,
    pub additionals: Vec<Vec<u8>>,
    pub trailing: Vec<u8>,
}

impl Ask {
    /// A plain UDP query (RD=1, class IN, no OPT) for an absolute name.
    pub fn new(name: &str, qtype: u16) -> Self {
        Self::labels(labels(name), qtype)
    }

    pub fn labels(name: Vec<Vec<u8>>, qtype: u16) -> Self {
        Self {
            id: 0xBEEF,
            opcode: 0,
            recursion_desired: true,
            checking_disabled: false,
            authentic_data: false,
            name,
            qtype,
            qclass: super::IN,
            edns: None,
            transport: Transport::Udp,
            answers: Vec::new(),
            authorities: Vec::new(),
            additionals: Vec::new(),
            trailing: Vec::new(),
        }
    }

    pub fn tcp(mut self) -> Self {
        self.transport = Transport::Tcp;
        self
    }

    pub fn edns(mut self, edns: Edns) -> Self {
        self.edns = Some(edns);
        self
    }

    pub fn class(mut self, class: u16) -> Self {
        self.qclass = class;
        self
    }

    pub fn opcode(mut self, opcode: u8) -> Self {
        self.opcode = opcode;
        self
    }

    pub fn id(mut self, id: u16) -> Self {
        self.id = id;
        self
    }

    /// RD=0, CD=1: the other values of the two bits that are copied.
    pub fn other_flags(mut self) -> Self {
        self.recursion_desired = false;
        self.checking_disabled = true;
        self.authentic_data = true;
        self
    }

    /// Every letter of the name in a random case (draft-vixie-dnsext-dns0x20).
    pub fn random_case(mut self, rng: &mut fastrand::Rng) -> Self {
        for byte in self.name.iter_mut().flatten() {
            if rng.bool() {
                byte.make_ascii_uppercase();
            } else {
                byte.make_ascii_lowercase();
            }
        }
        self
    }

    /// The flag bytes.
    pub fn flags(&self) -> u16 {
        u16::from(self.opcode) << 11
            | u16::from(self.recursion_desired) << 8
            | u16::from(self.authentic_data) << 5
            | u16::from(self.checking_disabled) << 4
    }

    /// The question's bytes.
    pub fn question(&self) -> Vec<u8> {
        let mut bytes = name_wire(&self.name);
        bytes.extend(self.qtype.to_be_bytes());
        bytes.extend(self.qclass.to_be_bytes());
        bytes
    }

    /// The whole message.
    pub fn wire(&self) -> Vec<u8> {
        let opt = self.edns.as_ref().map(Edns::wire);
        let additionals = self.additionals.len() + usize::from(opt.is_some());
        let mut bytes = Vec::new();
        for word in [self.id, self.flags(), 1] {
            bytes.extend(word.to_be_bytes());
        }
        for count in [self.answers.len(), self.authorities.len(), additionals] {
            bytes.extend(u16::try_from(count).unwrap().to_be_bytes());
        }
        bytes.extend(self.question());
        let records = self.answers.iter().chain(&self.authorities).chain(&self.additionals).chain(&opt);
        records.for_each(|r| bytes.extend(r));
        bytes.extend(&self.trailing);
        bytes
    }

    /// The largest reply that may come back (`dns.md` 1.10), `bufsize` being the server's.
    pub fn limit(&self, bufsize: u16) -> usize {
        match (self.transport, &self.edns) {
            (Transport::Tcp, _) => 65535,
            (Transport::Udp, None) => 512,
            (Transport::Udp, Some(edns)) => usize::from(edns.size.clamp(512, bufsize.max(512))),
        }
    }
}
