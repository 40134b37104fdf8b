//! The domains of NVTX. Ranges of a thread nest within their domain.

use crate::support::sync::lock;
use std::sync::Mutex;

/// The names of NVTX's domains. The first one has the number 1: the default domain, 0, has no name.
static DOMAINS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The number of the domain with this name. Libraries create theirs once per copy of NVTX. 0, the default domain, if there
/// are too many.
pub fn number(name: &str) -> u32 {
    let mut domains = lock(&DOMAINS);
    if let Some(n) = domains.iter().position(|known| known == name) {
        return n as u32 + 1;
    }
    if domains.len() >= usize::from(u16::MAX) {
        return 0;
    }
    domains.push(name.to_owned());
    domains.len() as u32
}

/// The name of a domain; `None` for the default domain.
pub fn name(domain: u32) -> Option<String> {
    let n = (domain as usize).checked_sub(1)?;
    lock(&DOMAINS).get(n).cloned()
}
