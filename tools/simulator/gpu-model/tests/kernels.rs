//! The model as a library: executes kernels, given as instruction words, with [`Gpu::dispatch`] and through a queue, without
//! ROCr.
//!
//! The words are the output of `llvm-mc --arch=amdgcn --mcpu=gfx1100` for the assembly in the comments. s[0:1] is the
//! address of the kernel arguments, s2 to s4 are the workgroup id, and v0 is the packed work-item id.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gpu_model::dispatch::{Error, Gpu, Packet};
use gpu_model::exec::Fault;
use gpu_model::isa::Architecture;
use gpu_model::memory::Memory;
use gpu_model::queue::{self, Host, Info, Queue};

/// The GPU address of the only allocation, and addresses in it.
const START: u64 = 0x10_0000;
const SIZE: u64 = 0x40_0000;
const CODE: u64 = START;
const DESCRIPTOR: u64 = START + 0x1000;
const ARGUMENTS: u64 = START + 0x2000;
const RING: u64 = START + 0x3000;
const INDEXES: u64 = START + 0x4000;
const SIGNALS: u64 = START + 0x5000;
const DATA: u64 = START + 0x10_0000;

struct Machine {
    bytes: &'static [AtomicU32],
    gpu: Arc<Gpu>,
}

impl Machine {
    fn new() -> Machine {
        Machine::with_architecture(Architecture::Gfx11)
    }
    fn with_architecture(arch: Architecture) -> Machine {
        let bytes: &'static [AtomicU32] = (0..SIZE / 4)
            .map(|_| AtomicU32::new(0))
            .collect::<Vec<_>>()
            .leak();
        let memory = Memory::new((bytes.as_ptr() as usize).wrapping_sub(START as usize));
        // SAFETY: the bytes are atomics and are never freed.
        unsafe { memory.allocated(START, SIZE, true) };
        Machine {
            bytes,
            gpu: Arc::new(Gpu::new(memory).with_architecture(arch)),
        }
    }
    fn set(&self, address: u64, words: &[u32]) {
        for (n, word) in words.iter().enumerate() {
            self.bytes[(address - START) as usize / 4 + n].store(*word, SeqCst);
        }
    }
    fn word(&self, address: u64) -> u32 {
        self.bytes[(address - START) as usize / 4].load(SeqCst)
    }
    fn set_long(&self, address: u64, value: u64) {
        self.set(address, &[value as u32, (value >> 32) as u32]);
    }
    fn byte(&self, address: u64) -> u8 {
        (self.word(address & !3) >> (8 * (address & 3))) as u8
    }
    /// Writes code and a descriptor to memory: 16 VGPRs, kernel arguments, all three workgroup ids, and work-item ids of
    /// three dimensions.
    fn load(&self, code: &[u32], wave32: bool) {
        self.set(CODE, code);
        let mut descriptor = [0; 16];
        descriptor[4] = CODE.wrapping_sub(DESCRIPTOR) as u32;
        descriptor[5] = (CODE.wrapping_sub(DESCRIPTOR) >> 32) as u32;
        descriptor[12] = if wave32 { 1 } else { 3 };
        descriptor[13] = 2 << 1 | 7 << 7 | 2 << 11;
        descriptor[14] = 1 << 3 | u32::from(wave32) << 10;
        self.set(DESCRIPTOR, &descriptor);
        self.set_long(ARGUMENTS, DATA);
        for n in 0..0x1000 {
            self.set(DATA + 4 * n, &[0xffff_ffff]);
        }
    }
    fn run(&self, workgroup: [u16; 3], grid: [u32; 3]) -> Result<(), Error> {
        self.gpu.dispatch(&packet(workgroup, grid), || false)
    }
}

fn packet(workgroup_size: [u16; 3], grid_size: [u32; 3]) -> Packet {
    Packet {
        workgroup_size,
        grid_size,
        group_segment_size: 2048,
        kernel_object: DESCRIPTOR,
        kernarg_address: ARGUMENTS,
        ..Packet::default()
    }
}

/// Each work-item stores the low byte of its packed id. The packed id is the offset.
const STORE_ITEMS: &[u32] = &[
    0xf4040100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], 0x0
    0xbf89fc07, // s_waitcnt lgkmcnt(0)
    0xdc620000, 0x00040000, // global_store_b8 v0, v0, s[4:5]
    0xbfb00000, // s_endpgm
];

/// Like [`STORE_ITEMS`], but each workgroup's address is 40 bytes higher than the address of the previous one.
const STORE_ITEMS_OF_GROUPS: &[u32] = &[
    0xf4040100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], 0x0
    0xbf89fc07, // s_waitcnt lgkmcnt(0)
    0x9607a802, // s_mul_i32 s7, s2, 40
    0x80040704, // s_add_u32 s4, s4, s7
    0x82058005, // s_addc_u32 s5, s5, 0
    0xdc620000, 0x00040000, // global_store_b8 v0, v0, s[4:5]
    0xbfb00000, // s_endpgm
];

#[test]
fn the_last_workgroup_of_a_grid_may_be_partial() {
    for wave32 in [true, false] {
        let machine = Machine::new();
        machine.load(STORE_ITEMS_OF_GROUPS, wave32);
        machine.run([40, 1, 1], [100, 1, 1]).unwrap();
        for n in 0..104 {
            let expected = if n < 100 { (n % 40) as u8 } else { 0xff };
            assert_eq!(machine.byte(DATA + n), expected, "byte {n}");
        }
        let lanes = machine.gpu.stats().lane_instructions.load(SeqCst);
        assert_eq!(lanes, 100, "one vector instruction per work-item");
    }
}

#[test]
fn work_item_ids_are_packed_and_partial_in_three_dimensions() {
    let machine = Machine::new();
    machine.load(STORE_ITEMS, true);
    // One workgroup, which the grid reduces to 3 x 2 x 2 work-items.
    machine.set(DATA + (1 << 20), &[0xffff_ffff, 0xffff_ffff]);
    machine.run([4, 8, 2], [3, 2, 2]).unwrap();
    for z in 0..2 {
        for y in 0..3 {
            for x in 0..4 {
                let id = x | y << 10 | z << 20;
                let inside = x < 3 && y < 2;
                let initial = if z == 1 && y > 0 { 0 } else { 0xff };
                let expected = if inside { x as u8 } else { initial };
                assert_eq!(machine.byte(DATA + id), expected, "({x}, {y}, {z})");
            }
        }
    }
}

/// A kernel of gfx942 whose argument is preloaded to s[2:3], with 8 VGPRs and 8 AccVGPRs. It stores the work-item id by way
/// of the AccVGPR whose number is the argument.
fn preloaded(machine: &Machine, agpr: u32) {
    machine.load(&[0xbf92_0002], false); // s_trap 2
    // The code for firmware that preloads arguments.
    machine.set(
        CODE + 256,
        &[
            0x24020082, // v_lshlrev_b32 v1, 2, v0
            0xd3d94000 | agpr,
            0x18000100, // v_accvgpr_write_b32 a7, v0
            0xd3d84002,
            0x18000100 | agpr, // v_accvgpr_read_b32 v2, a7
            0xdc708000,
            0x00020201, // global_store_dword v1, v2, s[2:3]
            0xbf810000, // s_endpgm
        ],
    );
    // ACCUM_OFFSET, 16 registers, four user SGPRs, two preloaded ones.
    machine.set(DESCRIPTOR + 44, &[1, 1, 4 << 1, 1 << 3 | 2 << 16]);
}

#[test]
fn a_kernel_of_gfx942_has_preloaded_arguments_and_accvgprs() {
    let machine = Machine::with_architecture(Architecture::Gfx942);
    preloaded(&machine, 7);
    machine.run([64, 1, 1], [64, 1, 1]).unwrap();
    for n in 0..64 {
        assert_eq!(machine.word(DATA + 4 * n), n as u32);
    }
    preloaded(&machine, 8);
    let (what, text) = fault(machine.run([64, 1, 1], [64, 1, 1]));
    assert_eq!(what, Fault::Agpr(8));
    assert!(text.contains("v_accvgpr_write_b32 a8, v0"), "{text}");
    // RDNA does not preload.
    let machine = Machine::new();
    preloaded(&machine, 7);
    let error = machine.run([64, 1, 1], [64, 1, 1]).unwrap_err();
    assert!(error.to_string().contains("gfx1100 does not"), "{error}");
}

/// Each workgroup stores TTMP7, the numbers in the dimensions y and z, at 4 × (16 x + 4 y + z).
const STORE_GROUPS_OF_GFX12: &[u32] = &[
    0xf4002100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], 0x0
    0xbfc70000, // s_wait_kmcnt 0x0
    0x84068675, // s_lshl_b32 s6, ttmp9, 6
    0x9307ff73, 0x00100000, // s_bfe_u32 s7, ttmp7, 0x100000
    0x88860607, // s_lshl4_add_u32 s6, s7, s6
    0x85079073, // s_lshr_b32 s7, ttmp7, 16
    0x87860607, // s_lshl2_add_u32 s6, s7, s6
    0xca100006, 0x01020073, // v_dual_mov_b32 v1, s6 :: v_dual_mov_b32 v2, ttmp7
    0xee068004, 0x01080000, 0x00000001, // global_store_b32 v1, v2, s[4:5] scope:SCOPE_DEV
    0xbfb00000, // s_endpgm
];

#[test]
fn the_workgroup_of_gfx12_is_in_ttmps() {
    let machine = Machine::with_architecture(Architecture::Gfx12);
    machine.load(STORE_GROUPS_OF_GFX12, true);
    machine.run([32, 1, 1], [96, 4, 3]).unwrap();
    for (x, y, z) in (0..36).map(|i| (i % 3, i / 3 % 4, i / 12)) {
        assert_eq!(
            machine.word(DATA + 4 * (16 * x + 4 * y + z)),
            (y | z << 16) as u32
        );
    }
    let error = machine.run([32, 1, 1], [32, 0x1_0001, 1]).unwrap_err();
    let expected = "65537 workgroups in dimension 1: more than 65536";
    assert!(error.to_string().contains(expected), "{error}");
}

/// After its signal, wave 0 waits in a loop for the result of wave 1, which is behind the barrier.
const SPLIT_BARRIER: &[u32] = &[
    0xf4002100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], 0x0
    0xbfc70000, // s_wait_kmcnt 0x0
    0xbe804ec1, // s_barrier_signal -1
    0x9306ff74, 0x00050019, // s_bfe_u32 s6, ttmp8, 0x50019
    0xbf068006, // s_cmp_eq_u32 s6, 0
    0xbfa20007, // s_cbranch_scc1 again
    0xbf94ffff, // s_barrier_wait -1
    0xca100080, 0x01020087, // v_dual_mov_b32 v1, 0 :: v_dual_mov_b32 v2, 7
    0xee068004, 0x01000000, 0x00000001, // global_store_b32 v1, v2, s[4:5]
    0xbfb00000, // s_endpgm
    0xf4000182, 0xf8000000, // again: s_load_b32 s6, s[4:5], 0x0
    0xbfc70000, // s_wait_kmcnt 0x0
    0xbf078706, // s_cmp_lg_u32 s6, 7
    0xbfa2fffb, // s_cbranch_scc1 again
    0xbf94ffff, // s_barrier_wait -1
    0xbfb00000, // s_endpgm
];

#[test]
fn a_barrier_is_complete_when_all_waves_have_signalled_it() {
    let machine = Machine::with_architecture(Architecture::Gfx12);
    machine.load(SPLIT_BARRIER, true);
    let turns = AtomicU32::new(0);
    let stop = || turns.fetch_add(1, SeqCst) > 1000;
    machine
        .gpu
        .dispatch(&packet([64, 1, 1], [64, 1, 1]), stop)
        .unwrap();
    assert_eq!(machine.word(DATA), 7);
    // A wait without a signal, two signals, the barrier whose number is in M0.
    for code in [
        &[0xbf94_ffff][..],
        &[0xbe80_4ec1, 0xbe80_4ec1],
        &[0xbe80_4e7d],
    ] {
        machine.load(code, true);
        assert_eq!(fault(machine.run([32, 1, 1], [32, 1, 1])).0, Fault::Unknown);
    }
}

#[test]
fn an_instruction_of_another_architecture_is_a_fault_that_names_the_target() {
    let machine = Machine::with_architecture(Architecture::Gfx90a);
    machine.load(&[0xbfb0_0000], false); // s_endpgm of gfx11
    let (what, text) = fault(machine.run([64, 1, 1], [64, 1, 1]));
    assert_eq!(what, Fault::Illegal("gfx90a"));
    assert!(
        text.contains("not a supported gfx90a instruction"),
        "{text}"
    );
}

/// Workgroup 0 waits in a loop until another workgroup has stored its result. Without another workgroup, it never ends.
const SPIN: &[u32] = &[
    0xf4040100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], 0x0
    0xbf89fc07, // s_waitcnt lgkmcnt(0)
    0xbf078002, // s_cmp_lg_u32 s2, 0
    0xbfa20007, // s_cbranch_scc1 other
    0xf4000182, 0xf8000000, // again: s_load_b32 s6, s[4:5], 0x0
    0xbf89fc07, // s_waitcnt lgkmcnt(0)
    0xbf06c106, // s_cmp_eq_u32 s6, -1
    0xbfa2fffb, // s_cbranch_scc1 again
    0x8004a004, // s_add_u32 s4, s4, 32
    0x82058005, // s_addc_u32 s5, s5, 0
    0xdc620000, 0x00040000, // other: global_store_b8 v0, v0, s[4:5]
    0xbfb00000, // s_endpgm
];

#[test]
fn a_workgroup_can_wait_for_a_later_one() {
    let machine = Machine::new();
    machine.load(SPIN, true);
    machine.run([32, 1, 1], [64, 1, 1]).unwrap();
    for n in 0..64 {
        assert_eq!(machine.byte(DATA + n), (n % 32) as u8);
    }
}

#[test]
fn a_kernel_that_never_ends_can_be_stopped() {
    let machine = Machine::new();
    machine.load(SPIN, true);
    let calls = AtomicU64::new(0);
    let result = machine.gpu.dispatch(&packet([32, 1, 1], [32, 1, 1]), || {
        calls.fetch_add(1, SeqCst) > 3
    });
    assert!(matches!(result, Err(Error::Stopped)), "{result:?}");
}

#[test]
fn new_code_at_an_old_address_is_decoded_again() {
    let machine = Machine::new();
    for (code, stored) in [(STORE_ITEMS, 7), (&[0xbfb0_0000][..], 0xff)] {
        machine.load(code, true);
        machine.run([8, 1, 1], [8, 1, 1]).unwrap();
        assert_eq!(machine.byte(DATA + 7), stored);
    }
}

fn fault(result: Result<(), Error>) -> (Fault, String) {
    match result {
        Err(Error::Fault(report)) => (report.fault.clone(), report.to_string()),
        other => panic!("no fault: {other:?}"),
    }
}

#[test]
fn a_fault_report_has_the_location() {
    let machine = Machine::new();
    machine.load(
        &[
            0xbf800000, // s_nop 0
            0xbe840180, // s_mov_b64 s[4:5], 0
            0xdc620010, 0x00040000, // global_store_b8 v0, v0, s[4:5] offset:16
            0xbfb00000, // s_endpgm
        ],
        true,
    );
    let (what, text) = fault(machine.run([64, 1, 1], [256, 1, 1]));
    assert!(
        matches!(
            what,
            Fault::Memory {
                address: 16,
                size: 1,
                write: true,
                lane: Some(0)
            }
        ),
        "{what:?}"
    );
    assert_eq!(
        text,
        "kernel with its descriptor at 0x101000 (no symbol): write of 1 bytes at 0x10: no writable memory is \
         allocated there\n  at 0x100008 (the kernel's entry + 0x8): dc620010 00040000  global_store_b8 v0, v0, s[4:5] \
         offset:16\n  workgroup (0, 0, 0), wave 0, lane 0, exec 0xffffffff"
    );

    // ds_gws_barrier v0 gds
    machine.load(&[0xd876_0000, 0], true);
    assert_eq!(fault(machine.run([1, 1, 1], [1, 1, 1])).0, Fault::Unknown);
    // s_trap 2
    machine.load(&[0xbf90_0002], true);
    assert_eq!(fault(machine.run([1, 1, 1], [1, 1, 1])).0, Fault::Trap(2));
    machine.load(&[0], true);
    machine.set(CODE, &[0x7e00_ffff]);
    assert_eq!(
        fault(machine.run([1, 1, 1], [1, 1, 1])).0,
        Fault::Illegal("gfx1100")
    );
}

#[test]
fn an_invalid_packet_is_rejected() {
    let machine = Machine::new();
    machine.load(STORE_ITEMS, true);
    for (workgroup, grid, why) in [
        ([0, 1, 1], [8, 1, 1], "a workgroup of [0, 1, 1]"),
        ([1024, 2, 1], [8, 1, 1], "more than 1024"),
    ] {
        let error = machine.run(workgroup, grid).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let mut elsewhere = packet([8, 1, 1], [8, 1, 1]);
    elsewhere.kernel_object = 0x40;
    let error = machine
        .gpu
        .dispatch(&elsewhere, || false)
        .unwrap_err()
        .to_string();
    assert!(error.contains("cannot read its descriptor"), "{error}");
    // The kernel reads the dispatch packet, but the packet does not have an address.
    machine.set(DESCRIPTOR + 56, &[1 << 1 | 1 << 10]);
    let error = machine.run([8, 1, 1], [8, 1, 1]).unwrap_err().to_string();
    assert!(error.contains("reads the dispatch packet"), "{error}");
}

/// A host that records events and failures.
struct Recorder {
    failed: Mutex<mpsc::Sender<String>>,
    events: AtomicU32,
}

impl Host for Recorder {
    fn set_event(&self, event: u32) {
        self.events.store(event, SeqCst);
    }
    fn failed(&self, error: &queue::Error) {
        self.failed.lock().unwrap().send(error.to_string()).unwrap();
    }
}

struct Ring<'a> {
    machine: &'a Machine,
    queue: Option<Queue>,
    number: u64,
    written: u64,
    recorder: Arc<Recorder>,
    failures: mpsc::Receiver<String>,
}

const PACKETS: u64 = 8;

impl Ring<'_> {
    fn new(machine: &Machine, number: u64) -> Ring<'_> {
        let (sender, failures) = mpsc::channel();
        let recorder = Arc::new(Recorder {
            failed: Mutex::new(sender),
            events: AtomicU32::new(0),
        });
        let mut ring = Ring {
            machine,
            queue: None,
            number,
            written: 0,
            recorder,
            failures,
        };
        // The packets of a new queue are invalid, as in HSA.
        for n in 0..PACKETS {
            machine.set(ring.slot(n), &[1]);
        }
        let info = Info {
            ring: ring.slot(0),
            packets: PACKETS,
            write_index: ring.index(),
            read_index: ring.index() + 8,
            queue: 0,
        };
        let queue = Queue::start(machine.gpu.clone(), ring.recorder.clone(), info);
        ring.queue = Some(queue.expect("a thread"));
        ring
    }
    fn slot(&self, n: u64) -> u64 {
        RING + 0x200 * self.number + 64 * (n % PACKETS)
    }
    fn index(&self) -> u64 {
        INDEXES + 16 * self.number
    }
    /// Writes a packet: first the body, then the header, then the write index.
    fn write(&mut self, mut words: [u32; 16]) {
        let slot = self.slot(self.written);
        let header = std::mem::replace(&mut words[0], 1);
        self.machine.set(slot, &words);
        self.machine.set(slot, &[header]);
        self.written += 1;
        self.machine.set_long(self.index(), self.written);
    }
    fn kernel(&mut self, work_items: u32, completion: u64) {
        let mut words = [0; 16];
        words[0] = 2 | 1 << 16;
        words[1] = 8;
        words[3] = work_items;
        // A dimension that the packet does not use.
        words[4] = 0;
        set_pair(&mut words, 8, DESCRIPTOR);
        set_pair(&mut words, 10, ARGUMENTS);
        set_pair(&mut words, 14, completion);
        self.write(words);
    }
    fn barrier(&mut self, kind: u32, dependencies: &[u64], completion: u64) {
        let mut words = [0; 16];
        words[0] = kind;
        for (n, signal) in dependencies.iter().enumerate() {
            set_pair(&mut words, 2 + 2 * n, *signal);
        }
        set_pair(&mut words, 14, completion);
        self.write(words);
    }
}

fn set_pair(words: &mut [u32; 16], at: usize, value: u64) {
    words[at] = value as u32;
    words[at + 1] = (value >> 32) as u32;
}

/// The `n`th signal, with a value.
fn signal(machine: &Machine, n: u64, value: u64) -> u64 {
    let address = SIGNALS + 64 * n;
    machine.set_long(address + 8, value);
    address
}

fn value(machine: &Machine, signal: u64) -> u32 {
    machine.word(signal + 8)
}

fn wait_for(what: impl Fn() -> bool) -> bool {
    for _ in 0..20_000 {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    false
}

const SHORT: Duration = Duration::from_millis(20);

#[test]
fn a_queue_runs_kernels_in_order_and_completes_their_signals() {
    let machine = Machine::new();
    machine.load(STORE_ITEMS, true);
    let mut ring = Ring::new(&machine, 0);
    let done = signal(&machine, 0, 20);
    machine.set(done + 24, &[77]);
    // Two and a half times around the ring.
    for _ in 0..20 {
        assert!(wait_for(|| machine.word(ring.index())
            - machine.word(ring.index() + 8)
            < 8));
        ring.kernel(8, done);
    }
    assert!(wait_for(|| value(&machine, done) == 0));
    assert_eq!(machine.byte(DATA + 7), 7);
    assert_eq!(machine.word(ring.index() + 8), 20, "read index");
    assert_eq!(
        machine.word(ring.slot(3)) & 0xff,
        1,
        "a processed packet is invalid again"
    );
    let (start, end) = (machine.word(done + 32), machine.word(done + 40));
    assert!(
        start != 0 && end.wrapping_sub(start) < 1_000_000_000,
        "{start} {end}"
    );
    assert!(wait_for(|| ring.recorder.events.load(SeqCst) == 77));
}

#[test]
fn a_packet_with_an_invalid_header_is_not_processed() {
    let machine = Machine::new();
    machine.load(STORE_ITEMS, true);
    let mut ring = Ring::new(&machine, 0);
    let done = signal(&machine, 0, 1);
    let slot = ring.slot(0);
    ring.kernel(8, done);
    assert!(wait_for(|| value(&machine, done) == 0));
    // The write index changes before the header of the second packet.
    ring.written = 2;
    machine.set_long(ring.index(), 2);
    std::thread::sleep(SHORT);
    assert_eq!(machine.word(ring.index() + 8), 1);
    machine.set(ring.slot(1), &[3]);
    assert!(wait_for(|| machine.word(ring.index() + 8) == 2));
    assert_eq!(machine.word(slot) & 0xff, 1);
}

#[test]
fn barriers_wait_for_all_or_for_any_signal() {
    let machine = Machine::new();
    let mut ring = Ring::new(&machine, 0);
    let [a, b, and, or] = [0, 1, 2, 3].map(|n| signal(&machine, n, 1));
    ring.barrier(3, &[a, b], and);
    ring.barrier(5, &[0, a, b], or);
    signal(&machine, 0, 0);
    std::thread::sleep(SHORT);
    assert_eq!(value(&machine, and), 1);
    signal(&machine, 1, 0);
    assert!(wait_for(
        || value(&machine, and) == 0 && value(&machine, or) == 0
    ));

    let [c, d, or] = [4, 5, 6].map(|n| signal(&machine, n, 1));
    ring.barrier(5, &[c, d], or);
    std::thread::sleep(SHORT);
    assert_eq!(value(&machine, or), 1);
    signal(&machine, 5, 0);
    assert!(wait_for(|| value(&machine, or) == 0));
}

#[test]
fn a_kernel_can_wait_for_a_kernel_of_another_queue() {
    let machine = Machine::new();
    machine.load(SPIN, true);
    let mut first = Ring::new(&machine, 0);
    let mut second = Ring::new(&machine, 1);
    let [done, also] = [0, 1].map(|n| signal(&machine, n, 1));
    first.kernel(8, done);
    std::thread::sleep(SHORT);
    assert_eq!(value(&machine, done), 1, "its workgroup 0 waits");
    second.kernel(16, also);
    assert!(wait_for(
        || value(&machine, done) == 0 && value(&machine, also) == 0
    ));
}

#[test]
fn a_vendor_packet_waits_for_a_signals_value() {
    let machine = Machine::new();
    let mut ring = Ring::new(&machine, 0);
    let [on, done] = [0, 1].map(|n| signal(&machine, n, 1));
    let mut words = [0; 16];
    // AMD's barrier on a value: (value & 0xf) >= 5
    words[0] = 2 << 16;
    set_pair(&mut words, 2, on);
    set_pair(&mut words, 4, 5);
    set_pair(&mut words, 6, 0xf);
    words[8] = 3;
    set_pair(&mut words, 14, done);
    ring.write(words);
    signal(&machine, 0, 0x14);
    std::thread::sleep(SHORT);
    assert_eq!(value(&machine, done), 1);
    signal(&machine, 0, 0x15);
    assert!(wait_for(|| value(&machine, done) == 0));
}

#[test]
fn a_packet_that_is_not_modelled_is_reported_with_its_index() {
    let machine = Machine::new();
    let mut ring = Ring::new(&machine, 0);
    ring.barrier(3, &[], 0);
    ring.barrier(4, &[], 0);
    let failure = ring.failures.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(
        failure,
        "queue 0x103000, packet 1: packet type 4 is not modelled"
    );
}

#[test]
fn a_queue_can_be_destroyed_in_the_middle_of_a_kernel() {
    let machine = Machine::new();
    machine.load(SPIN, true);
    let mut ring = Ring::new(&machine, 0);
    let done = signal(&machine, 0, 1);
    ring.kernel(8, done);
    std::thread::sleep(SHORT);
    drop(ring.queue.take());
    assert_eq!(value(&machine, done), 1);
    assert!(
        ring.failures.try_recv().is_err(),
        "destroying a queue is not a failure"
    );
}
