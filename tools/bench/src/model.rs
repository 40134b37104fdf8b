//! The speed of the GPU model on one core, in lane-instructions per second. A vector instruction counts once for each
//! active lane.

use crate::measure::median;
use clap::Args;
use gpu_model::dispatch::{Gpu, Packet};
use gpu_model::isa::Architecture;
use gpu_model::memory::Memory;
use std::sync::atomic::Ordering::Relaxed;

#[derive(Args)]
pub struct Options {
    /// Runs of each kernel; the result is the median
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// Kernels of gfx1100 that repeat a loop 2000 times. s[0:1] is the address of the kernel arguments, v0 the work-item id.
const KERNELS: &[(&str, &[u32])] = &[
    (
        "arithmetic",
        &[
            0xb00607d0, // s_movk_i32 s6, 2000
            0xd6130001, 0x040e0501, // loop: v_fma_f32 v1, v1, v2, v3
            0x56060501, // v_fmac_f32 v3, v1, v2
            0x3a080104, // v_xor_b32 v4, v4, v0
            0xd72c0005, 0x02020104, // v_mul_lo_u32 v5, v4, v0
            0x4a080b04, // v_add_nc_u32 v4, v4, v5
            0x320a0883, // v_lshrrev_b32 v5, 3, v4
            0x7c980b04, // v_cmp_gt_u32 vcc_lo, v4, v5
            0x020c0b04, // v_cndmask_b32 v6, v4, v5, vcc_lo
            0x8106c106, // s_add_i32 s6, s6, -1
            0xbf078006, // s_cmp_lg_u32 s6, 0
            0xbfa2fff3, // s_cbranch_scc1 loop
            0xbfb00000, // s_endpgm
        ],
    ),
    (
        "global memory",
        &[
            0xf4040100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], 0x0
            0xb00607d0, // s_movk_i32 s6, 2000
            0x30020082, // v_lshlrev_b32 v1, 2, v0
            0xbf89fc07, // s_waitcnt lgkmcnt(0)
            0xdc520000, 0x02040001, // loop: global_load_b32 v2, v1, s[4:5]
            0xbf8903f7, // s_waitcnt vmcnt(0)
            0x4a040102, // v_add_nc_u32 v2, v2, v0
            0xdc6a0000, 0x00040201, // global_store_b32 v1, v2, s[4:5]
            0x8106c106, // s_add_i32 s6, s6, -1
            0xbf078006, // s_cmp_lg_u32 s6, 0
            0xbfa2fff7, // s_cbranch_scc1 loop
            0xbfb00000, // s_endpgm
        ],
    ),
    (
        "LDS and barriers",
        &[
            0xb00607d0, // s_movk_i32 s6, 2000
            0x30020082, // v_lshlrev_b32 v1, 2, v0
            0xd8d80000, 0x02000001, // loop: ds_load_b32 v2, v1
            0xbf89fc07, // s_waitcnt lgkmcnt(0)
            0x4a040102, // v_add_nc_u32 v2, v2, v0
            0xd8340000, 0x00000201, // ds_store_b32 v1, v2
            0xbfbd0000, // s_barrier
            0x8106c106, // s_add_i32 s6, s6, -1
            0xbf078006, // s_cmp_lg_u32 s6, 0
            0xbfa2fff6, // s_cbranch_scc1 loop
            0xbfb00000, // s_endpgm
        ],
    ),
];

/// Kernels of gfx942: the same, and a matrix multiplication, whose lane-instructions each are 64 fused multiply-adds.
const KERNELS_OF_CDNA: &[(&str, &[u32])] = &[
    (
        "arithmetic",
        &[
            0xb00607d0, // s_movk_i32 s6, 0x7d0
            0xd1cb0001, 0x040e0501, // v_fma_f32 v1, v1, v2, v3
            0x76060501, // v_fmac_f32 v3, v1, v2
            0x2a080104, // v_xor_b32 v4, v4, v0
            0xd2850005, 0x00020104, // v_mul_lo_u32 v5, v4, v0
            0x68080b04, // v_add_u32 v4, v4, v5
            0x200a0883, // v_lshrrev_b32 v5, 3, v4
            0x7d980b04, // v_cmp_gt_u32 vcc, v4, v5
            0x000c0b04, // v_cndmask_b32 v6, v4, v5, vcc
            0x8106c106, // s_add_i32 s6, s6, -1
            0xbf078006, // s_cmp_lg_u32 s6, 0
            0xbf85fff3, // s_cbranch_scc1 loop
            0xbf810000, // s_endpgm
        ],
    ),
    (
        "global memory",
        &[
            0xc0060100, 0x00000000, // s_load_dwordx2 s[4:5], s[0:1], 0x0
            0xb00607d0, // s_movk_i32 s6, 0x7d0
            0x24020082, // v_lshlrev_b32 v1, 2, v0
            0xbf8cc07f, // s_waitcnt lgkmcnt(0)
            0xdc508000, 0x02040001, // global_load_dword v2, v1, s[4:5]
            0xbf8c0f70, // s_waitcnt vmcnt(0)
            0x68040102, // v_add_u32 v2, v2, v0
            0xdc708000, 0x00040201, // global_store_dword v1, v2, s[4:5]
            0x8106c106, // s_add_i32 s6, s6, -1
            0xbf078006, // s_cmp_lg_u32 s6, 0
            0xbf85fff7, // s_cbranch_scc1 loop2
            0xbf810000, // s_endpgm
        ],
    ),
    (
        "LDS and barriers",
        &[
            0xb00607d0, // s_movk_i32 s6, 0x7d0
            0x24020082, // v_lshlrev_b32 v1, 2, v0
            0xd86c0000, 0x02000001, // ds_read_b32 v2, v1
            0xbf8cc07f, // s_waitcnt lgkmcnt(0)
            0x68040102, // v_add_u32 v2, v2, v0
            0xd81a0000, 0x00000201, // ds_write_b32 v1, v2
            0xbf8a0000, // s_barrier
            0x8106c106, // s_add_i32 s6, s6, -1
            0xbf078006, // s_cmp_lg_u32 s6, 0
            0xbf85fff6, // s_cbranch_scc1 loop3
            0xbf810000, // s_endpgm
        ],
    ),
    (
        "matrices",
        &[
            0xb00607d0, // s_movk_i32 s6, 0x7d0
            0xd3cd0004, 0x04120500, // v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[4:7]
            0x8106c106, // s_add_i32 s6, s6, -1
            0xbf078006, // s_cmp_lg_u32 s6, 0
            0xbf85fffb, // s_cbranch_scc1 loop4
            0xbf810000, // s_endpgm
        ],
    ),
];

const START: u64 = 0x1_0000;
const DESCRIPTOR: u64 = START + 0x400;
const ARGUMENTS: u64 = START + 0x800;
const DATA: u64 = START + 0x1000;

/// Million lane-instructions per second of processor time.
fn speed(arch: Architecture, code: &[u32]) -> Result<f64, String> {
    let mut bytes = vec![0u32; 0x1000];
    let mut put = |address: u64, words: &[u32]| {
        let at = (address - START) as usize / 4;
        bytes[at..at + words.len()].copy_from_slice(words);
    };
    put(START, code);
    let entry = START.wrapping_sub(DESCRIPTOR);
    put(DESCRIPTOR + 16, &[entry as u32, (entry >> 32) as u32]);
    // 8 VGPRs, which is ACCUM_OFFSET 1 for gfx942; f32 and f64 denormals; two user SGPRs, for the address of the kernel
    // arguments; wave32 for gfx11
    let wave32 = u32::from(arch == Architecture::Gfx11) << 10;
    put(DESCRIPTOR + 44, &[1, 15 << 16, 2 << 1, 1 << 3 | wave32]);
    put(ARGUMENTS, &[DATA as u32, (DATA >> 32) as u32]);

    let memory = Memory::new((bytes.as_ptr() as usize).wrapping_sub(START as usize));
    // SAFETY: the bytes outlive the GPU, and nothing else accesses them.
    unsafe { memory.allocated(START, 4 * bytes.len() as u64, true) };
    let gpu = Gpu::with_threads(memory, 1).with_architecture(arch);
    let packet = Packet {
        workgroup_size: [256, 1, 1],
        grid_size: [32 * 256, 1, 1],
        group_segment_size: 1024,
        kernel_object: DESCRIPTOR,
        kernarg_address: ARGUMENTS,
        ..Packet::default()
    };
    gpu.dispatch(&packet, || false)
        .map_err(|error| error.to_string())?;
    let stats = gpu.stats();
    Ok(stats.lane_instructions.load(Relaxed) as f64 * 1e3
        / stats.busy_nanoseconds.load(Relaxed) as f64)
}

pub fn run(options: &Options) -> Result<(), String> {
    println!("| kernel of | million lane-instructions per second, one core |");
    println!("| --- | ---: |");
    for (arch, kernels) in [
        (Architecture::Gfx11, KERNELS),
        (Architecture::Gfx942, KERNELS_OF_CDNA),
    ] {
        for (name, code) in kernels {
            let runs = (0..options.runs)
                .map(|_| speed(arch, code))
                .collect::<Result<_, _>>()?;
            println!("| {}: {name} | {:.1} |", arch.name(), median(runs));
        }
    }
    Ok(())
}
