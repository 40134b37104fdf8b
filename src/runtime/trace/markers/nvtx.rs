//! NVTX: the markers of CUDA programs. NVTX is in the program's own code. It loads the library that NVTX_INJECTION64_PATH
//! names, and calls its function `InitializeInjectionNvtx2`, which sets the functions that NVTX calls from then on. FFI: the
//! signatures are from `nvtx3/nvToolsExt.h`.
//!
//! A handle of a domain is its number. A handle of a registered string is the address of its copy, which is never freed.

use super::domains;
use super::entries;
use super::ranges::{Action, MAX_TEXT, level_in, range_in};
use crate::support::panic_guard::{Cost, guarded, guarded_hot};
use crate::support::settings::settings;
use crate::trace::recorder::streams::{self, NamedStream};
use cuda_abi::nvtx::*;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// Ids of ranges. The ids of roctx's ranges count from 1, so they are different.
static LAST_RANGE: AtomicU64 = AtomicU64::new(1 << 40);

type Domain = usize;

/// A text of the program. Only its first [`MAX_TEXT`] bytes are used.
enum Text<'a> {
    Borrowed(&'a [u8]),
    Owned(String),
}

impl Text<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Text::Borrowed(bytes) => bytes,
            Text::Owned(text) => text.as_bytes(),
        }
    }
}

/// # Safety
/// `text` is null or a C string, which the caller does not change during its use.
unsafe fn narrow<'a>(text: *const c_char) -> Text<'a> {
    if text.is_null() {
        return Text::Borrowed(b"");
    }
    // SAFETY: the caller's promise.
    unsafe {
        let length = libc::strnlen(text, MAX_TEXT);
        Text::Borrowed(std::slice::from_raw_parts(text.cast(), length))
    }
}

/// # Safety
/// `text` is null or a string of `wchar_t` that ends with 0.
unsafe fn wide<'a>(text: *const u32) -> Text<'a> {
    let mut decoded = String::new();
    if text.is_null() {
        return Text::Owned(decoded);
    }
    for n in 0..MAX_TEXT {
        // SAFETY: the caller's promise: no character before was 0.
        match unsafe { text.add(n).read() } {
            0 => break,
            code => decoded.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }
    Text::Owned(decoded)
}

/// # Safety
/// `attributes` is null or a pointer to the program's attributes.
unsafe fn message<'a>(attributes: *const nvtxEventAttributes_t) -> Text<'a> {
    // SAFETY: the caller's promise. The type of the message determines the member.
    unsafe {
        let Some(attributes) = attributes.as_ref() else {
            return Text::Borrowed(b"");
        };
        // An earlier version without a message.
        if usize::from(attributes.size) < size_of::<nvtxEventAttributes_t>() {
            return Text::Borrowed(b"");
        }
        match attributes.messageType {
            NVTX_MESSAGE_TYPE_ASCII => narrow(attributes.message.ascii),
            NVTX_MESSAGE_TYPE_UNICODE => wide(attributes.message.unicode),
            NVTX_MESSAGE_TYPE_REGISTERED => registered(attributes.message.registered),
            _ => Text::Borrowed(b""),
        }
    }
}

/// # Safety
/// `handle` is 0 or a result of [`register`].
unsafe fn registered<'a>(handle: usize) -> Text<'a> {
    let text = handle as *const Box<[u8]>;
    // SAFETY: the caller's promise: it is never freed.
    Text::Borrowed(unsafe { text.as_ref() }.map_or(b"", |text| text))
}

fn register(text: &Text<'_>) -> usize {
    let text: Box<[u8]> = text.bytes().into();
    Box::leak(Box::new(text)) as *const Box<[u8]> as usize
}

fn create_domain(name: &Text<'_>) -> Domain {
    domains::number(&String::from_utf8_lossy(name.bytes())) as Domain
}

fn mark(domain: Domain, text: &Text<'_>) {
    entries::record(Action::Mark, level_in(domain as u32, 0), Some(text.bytes()));
}

fn start(domain: Domain, text: &Text<'_>) -> u64 {
    let id = range_in(domain, LAST_RANGE.fetch_add(1, Ordering::Relaxed) + 1);
    entries::record(Action::Start, id, Some(text.bytes()));
    id
}

fn push(domain: Domain, text: &Text<'_>) -> c_int {
    entries::push(domain as u32, Some(text.bytes())) as c_int
}

fn pop(domain: Domain) -> c_int {
    entries::pop(domain as u32).map_or(-1, |level| level as c_int)
}

fn name_stream(handle: *mut c_void, text: &Text<'_>) {
    let stream = streams::id(NamedStream::of(handle));
    entries::record(Action::NameStream, stream.into(), Some(text.bytes()));
}

fn name_device(device: c_int, text: &Text<'_>) {
    if let Ok(device) = u64::try_from(device) {
        entries::record(Action::NameCudaDevice, device, Some(text.bytes()));
    }
}

fn name_thread(thread: u32, text: &Text<'_>) {
    entries::record(Action::NameThread, thread.into(), Some(text.bytes()));
}

/// Functions that NVTX calls: each has the arguments of NVTX's function. Before its name: the result after an internal error.
macro_rules! functions {
    ($($module:ident, $numbers:ident {
        $($otherwise:expr, $name:ident($($arg:ident: $type:ty),*) -> $result:ty $work:block)*
    })*) => {
        $($(
            #[expect(non_snake_case, reason = "NVTX's name")]
            unsafe extern "C" fn $name($($arg: $type),*) -> $result {
                // SAFETY: the program's arguments, as NVTX's header requires them.
                guarded_hot(Cost::Markers, $otherwise, || unsafe { $work })
            }
        )*)*

        /// The functions of each of NVTX's modules, by their numbers.
        pub fn tables() -> [(u32, Vec<(usize, *const c_void)>); 4] {
            [$(($module, vec![$(($numbers::$name, $name as *const c_void)),*])),*]
        }
    };
}

type Attributes = *const nvtxEventAttributes_t;
type Narrow = *const c_char;
type Wide = *const u32;

#[expect(unused_unsafe, reason = "some functions have no pointers")]
mod called {
    use super::*;

    functions! {
        NVTX_CB_MODULE_CORE, core {
            (), MarkEx(attributes: Attributes) -> () { mark(0, &message(attributes)) }
            (), MarkA(text: Narrow) -> () { mark(0, &narrow(text)) }
            (), MarkW(text: Wide) -> () { mark(0, &wide(text)) }
            0, RangeStartEx(attributes: Attributes) -> u64 { start(0, &message(attributes)) }
            0, RangeStartA(text: Narrow) -> u64 { start(0, &narrow(text)) }
            0, RangeStartW(text: Wide) -> u64 { start(0, &wide(text)) }
            (), RangeEnd(id: u64) -> () { entries::record(Action::Stop, id, None); }
            -1, RangePushEx(attributes: Attributes) -> c_int { push(0, &message(attributes)) }
            -1, RangePushA(text: Narrow) -> c_int { push(0, &narrow(text)) }
            -1, RangePushW(text: Wide) -> c_int { push(0, &wide(text)) }
            -1, RangePop() -> c_int { pop(0) }
            (), NameOsThreadA(thread: u32, text: Narrow) -> () { name_thread(thread, &narrow(text)) }
            (), NameOsThreadW(thread: u32, text: Wide) -> () { name_thread(thread, &wide(text)) }
        }
        NVTX_CB_MODULE_CORE2, core2 {
            (), DomainMarkEx(domain: Domain, attributes: Attributes) -> () { mark(domain, &message(attributes)) }
            0, DomainRangeStartEx(domain: Domain, attributes: Attributes) -> u64 { start(domain, &message(attributes)) }
            (), DomainRangeEnd(_domain: Domain, id: u64) -> () { entries::record(Action::Stop, id, None); }
            -1, DomainRangePushEx(domain: Domain, attributes: Attributes) -> c_int { push(domain, &message(attributes)) }
            -1, DomainRangePop(domain: Domain) -> c_int { pop(domain) }
            0, DomainRegisterStringA(_domain: Domain, text: Narrow) -> usize { register(&narrow(text)) }
            0, DomainRegisterStringW(_domain: Domain, text: Wide) -> usize { register(&wide(text)) }
            0, DomainCreateA(text: Narrow) -> Domain { create_domain(&narrow(text)) }
            0, DomainCreateW(text: Wide) -> Domain { create_domain(&wide(text)) }
        }
        NVTX_CB_MODULE_CUDA, cuda {
            (), NameCuDeviceA(device: c_int, text: Narrow) -> () { name_device(device, &narrow(text)) }
            (), NameCuDeviceW(device: c_int, text: Wide) -> () { name_device(device, &wide(text)) }
            (), NameCuStreamA(stream: *mut c_void, text: Narrow) -> () { name_stream(stream, &narrow(text)) }
            (), NameCuStreamW(stream: *mut c_void, text: Wide) -> () { name_stream(stream, &wide(text)) }
        }
        NVTX_CB_MODULE_CUDART, cudart {
            (), NameCudaDeviceA(device: c_int, text: Narrow) -> () { name_device(device, &narrow(text)) }
            (), NameCudaDeviceW(device: c_int, text: Wide) -> () { name_device(device, &wide(text)) }
            (), NameCudaStreamA(stream: *mut c_void, text: Narrow) -> () { name_stream(stream, &narrow(text)) }
            (), NameCudaStreamW(stream: *mut c_void, text: Wide) -> () { name_stream(stream, &wide(text)) }
        }
    }
}

/// Sets the functions that NVTX calls in one library. Returns whether devprof records markers.
///
/// # Safety
/// `tables` is NVTX's function.
pub unsafe fn initialize(tables: Option<NvtxGetExportTableFunc_t>) -> bool {
    guarded(Cost::Markers, false, || {
        if !settings().is_traced() || !settings().tracing.markers {
            return false;
        }
        // SAFETY: the caller's promise.
        tables.is_some_and(|tables| unsafe { set_functions(tables) })
    })
}

/// # Safety
/// `tables` is NVTX's function.
unsafe fn set_functions(tables: NvtxGetExportTableFunc_t) -> bool {
    // SAFETY: the caller's promise, and the types of the header. NVTX waits for the end of this function before it calls
    // one of the others.
    unsafe {
        let callbacks = tables(NVTX_ETID_CALLBACKS).cast::<NvtxExportTableCallbacks>();
        let Some(callbacks) = callbacks.as_ref() else {
            return false;
        };
        let Some(get) = callbacks.GetModuleFunctionTable else {
            return false;
        };
        if callbacks.struct_size < size_of::<NvtxExportTableCallbacks>() {
            return false;
        }
        for (module, functions) in called::tables() {
            let (mut table, mut size) = (std::ptr::null_mut(), 0);
            // A program may use only some of NVTX's headers.
            if get(module, &raw mut table, &raw mut size) != 1 || table.is_null() {
                continue;
            }
            for (number, function) in functions {
                // The last entry is null.
                if number < size as usize {
                    let slot = table.add(number).read();
                    if !slot.is_null() {
                        slot.write(function);
                    }
                }
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_all_types() {
        let mut attributes = nvtxEventAttributes_t {
            version: 3,
            size: size_of::<nvtxEventAttributes_t>() as u16,
            category: 0,
            colorType: 0,
            color: 0,
            payloadType: 0,
            reserved0: 0,
            payload: 0,
            messageType: NVTX_MESSAGE_TYPE_ASCII,
            message: nvtxMessageValue_t {
                ascii: c"narrow".as_ptr(),
            },
        };
        // SAFETY: attributes of NVTX.
        let text =
            |attributes: &nvtxEventAttributes_t| unsafe { message(attributes).bytes().to_vec() };
        assert_eq!(text(&attributes), b"narrow");
        let wide = [0x5a, 0xfc, 0x1f600, 0xd800, 0];
        attributes.messageType = NVTX_MESSAGE_TYPE_UNICODE;
        attributes.message = nvtxMessageValue_t {
            unicode: wide.as_ptr(),
        };
        assert_eq!(text(&attributes), "Zü😀\u{fffd}".as_bytes());
        attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
        attributes.message = nvtxMessageValue_t {
            registered: register(&Text::Borrowed(b"registered")),
        };
        assert_eq!(text(&attributes), b"registered");
        attributes.message = nvtxMessageValue_t { registered: 0 };
        assert_eq!(text(&attributes), b"");
        attributes.messageType = 17;
        assert_eq!(text(&attributes), b"");
        attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
        attributes.message = nvtxMessageValue_t {
            ascii: c"narrow".as_ptr(),
        };
        attributes.size -= 8;
        assert_eq!(text(&attributes), b"");
    }

    #[test]
    fn a_domain_has_one_number() {
        let create = |name: &'static str| create_domain(&Text::Borrowed(name.as_bytes()));
        let (first, second) = (create("first"), create("second"));
        assert_ne!(first, second);
        assert_eq!(create("first"), first);
        assert_eq!(domains::name(second as u32).as_deref(), Some("second"));
        assert_eq!(domains::name(0), None);
    }
}
