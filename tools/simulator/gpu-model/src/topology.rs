//! The KFD topology that ROCr's model mode reads (`HSA_MODEL_TOPOLOGY`): one CPU node, one gfx1100 node.
//!
//! Files and property names are from Linux's `/sys/devices/virtual/kfd/kfd/topology`. The compute units are the units of an
//! RX 7900, but there are only eight: programs choose the sizes of their grids by the number of compute units.

use crate::isa::Architecture;
use std::fs;
use std::io;
use std::path::Path;

/// A GPU that can be modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub name: &'static str,
    gfx_target_version: u32,
    device_id: u32,
    /// AMDGPU_FAMILY_GC_11_0_0
    family_id: u32,
}

pub const TARGETS: &[Target] = &[Target {
    name: "gfx1100",
    gfx_target_version: 11_00_00,
    device_id: 0x744c,
    family_id: 145,
}];

const COMPUTE_UNITS: u64 = SHADER_ENGINES * SHADER_ARRAYS_PER_ENGINE * 2;
pub const SHADER_ENGINES: u64 = 2;
pub const SHADER_ARRAYS_PER_ENGINE: u64 = 2;
const SIMDS_PER_COMPUTE_UNIT: u64 = 2;
const VRAM: u64 = 8 << 30;

/// The compute units of a GPU, or of a partition of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// Accelerator complex dies.
    pub xccs: u64,
    /// Shader engines of each die.
    pub engines_per_xcc: u64,
    pub arrays_per_engine: u64,
    /// Compute units of each die.
    pub per_xcc: u64,
    /// The compute units that a shader engine has on the chip. Not all of them are in use, so their numbers have gaps.
    pub on_chip_per_engine: u64,
    pub simds_per_unit: u64,
    /// Waves that a compute unit can hold.
    pub waves_per_unit: u64,
}

/// An RX 7900 with fewer compute units.
const GFX11: Units = Units {
    xccs: 1,
    engines_per_xcc: SHADER_ENGINES,
    arrays_per_engine: SHADER_ARRAYS_PER_ENGINE,
    per_xcc: COMPUTE_UNITS,
    on_chip_per_engine: COMPUTE_UNITS / SHADER_ENGINES,
    simds_per_unit: SIMDS_PER_COMPUTE_UNIT,
    waves_per_unit: 32,
};

/// An MI210 with fewer compute units.
const GFX90A: Units = Units {
    xccs: 1,
    engines_per_xcc: 4,
    arrays_per_engine: 1,
    per_xcc: 8,
    on_chip_per_engine: 14,
    simds_per_unit: 4,
    waves_per_unit: 32,
};

const MI300X: Units = Units {
    xccs: 8,
    per_xcc: 38,
    on_chip_per_engine: 10,
    ..GFX90A
};

/// Other GPUs than MI300X with its instruction set, and the partitions of MI300X (its modes DPX, QPX and CPX). MI350X is a
/// gfx950, whose own instructions the model does not have.
const GFX942: &[(&str, Units)] = &[
    ("dpx", Units { xccs: 4, ..MI300X }),
    ("qpx", Units { xccs: 2, ..MI300X }),
    ("cpx", Units { xccs: 1, ..MI300X }),
    ("mi300a", Units { xccs: 6, ..MI300X }),
    (
        "mi308x",
        Units {
            xccs: 4,
            per_xcc: 20,
            ..MI300X
        },
    ),
    (
        "mi350x",
        Units {
            per_xcc: 32,
            on_chip_per_engine: 9,
            ..MI300X
        },
    ),
];

impl Units {
    /// The compute units of the model's GPU with this instruction set: all of MI300X, eight of the others.
    pub fn of(arch: Architecture) -> Units {
        match arch {
            Architecture::Gfx11 | Architecture::Gfx12 => GFX11,
            Architecture::Gfx90a => GFX90A,
            Architecture::Gfx942 => MI300X,
        }
    }

    /// The names of other GPUs, or partitions, with this instruction set, and their compute units.
    pub fn variants(arch: Architecture) -> &'static [(&'static str, Units)] {
        match arch {
            Architecture::Gfx942 => GFX942,
            _ => &[],
        }
    }

    /// All compute units.
    pub fn count(&self) -> u64 {
        self.xccs * self.per_xcc
    }

    /// The waves that all compute units can hold.
    pub fn waves(&self) -> u64 {
        self.count() * self.waves_per_unit
    }

    /// All shader engines.
    pub fn engines(&self) -> u64 {
        self.xccs * self.engines_per_xcc
    }
}

/// Writes properties, and the names of properties whose values are 0, with spaces between them.
fn write(path: &Path, properties: &[(&str, u64)], zeros: &str) -> io::Result<()> {
    let zeros = zeros.split_whitespace().map(|name| (name, 0));
    let text: String = (properties.iter().copied().chain(zeros))
        .map(|(name, value)| format!("{name} {value}\n"))
        .collect();
    write_text(path, &text)
}

fn write_text(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// Writes the topology of `target` to the folder `root`. The folder appears with all its files at once, so several processes
/// may call this at the same time. An existing complete topology is not changed.
pub fn create(root: &Path, target: Target) -> io::Result<()> {
    let parent = root
        .parent()
        .filter(|parent| *parent != Path::new(""))
        .unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let mut name = root
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not the name of a folder"))?
        .to_os_string();
    name.push(format!(".{}", std::process::id()));
    let fresh = parent.join(name);
    let placed = fill(&fresh, target).and_then(|()| match fs::rename(&fresh, root) {
        Err(_) if is_complete(root) => Ok(()),
        // Replace an incomplete topology.
        Err(_) if root.is_dir() => fs::remove_dir_all(root).and_then(|()| fs::rename(&fresh, root)),
        result => result,
    });
    if fresh.exists() {
        fs::remove_dir_all(&fresh)?;
    }
    placed
}

fn is_complete(root: &Path) -> bool {
    root.join("generation_id").is_file()
}

fn fill(root: &Path, target: Target) -> io::Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    write(
        &root.join("system_properties"),
        &[],
        "platform_oem platform_id platform_rev",
    )?;

    let cpu = root.join("nodes/0");
    write_text(&cpu.join("gpu_id"), "0\n")?;
    write_text(&cpu.join("name"), "\n")?;
    write(
        &cpu.join("properties"),
        &[
            ("cpu_cores_count", cpus),
            ("mem_banks_count", 1),
            ("io_links_count", 1),
            ("max_engine_clk_ccompute", 2000),
        ],
        "simd_count caches_count p2p_links_count cpu_core_id_base simd_id_base max_waves_per_simd lds_size_in_kb \
         gds_size_in_kb num_gws wave_front_size array_count simd_arrays_per_engine cu_per_simd_array simd_per_cu \
         max_slots_scratch_cu gfx_target_version vendor_id device_id location_id domain drm_render_minor hive_id \
         num_sdma_engines num_sdma_xgmi_engines num_sdma_queues_per_engine num_cp_queues",
    )?;
    write(
        &cpu.join("mem_banks/0/properties"),
        &[
            ("size_in_bytes", 16 << 30),
            ("width", 64),
            ("mem_clk_max", 2400),
        ],
        "heap_type flags",
    )?;
    write_link(&cpu, 0, 1)?;

    let gpu = root.join("nodes/1");
    // ROCr's model mode expects the node's number plus one.
    write_text(&gpu.join("gpu_id"), "2\n")?;
    write_text(&gpu.join("name"), &format!("{} model\n", target.name))?;
    write(
        &gpu.join("properties"),
        &[
            ("simd_count", COMPUTE_UNITS * SIMDS_PER_COMPUTE_UNIT),
            ("mem_banks_count", 1),
            ("caches_count", 2),
            ("io_links_count", 1),
            ("simd_id_base", 0x8000_0000),
            ("max_waves_per_simd", 16),
            ("lds_size_in_kb", 64),
            ("num_gws", 64),
            ("wave_front_size", 32),
            ("array_count", SHADER_ENGINES * SHADER_ARRAYS_PER_ENGINE),
            ("simd_arrays_per_engine", SHADER_ARRAYS_PER_ENGINE),
            (
                "cu_per_simd_array",
                COMPUTE_UNITS / SHADER_ENGINES / SHADER_ARRAYS_PER_ENGINE,
            ),
            ("simd_per_cu", SIMDS_PER_COMPUTE_UNIT),
            ("max_slots_scratch_cu", 32),
            ("gfx_target_version", target.gfx_target_version.into()),
            ("vendor_id", 0x1002),
            ("device_id", target.device_id.into()),
            ("location_id", 0x300),
            ("drm_render_minor", 128),
            ("num_sdma_engines", 2),
            ("num_sdma_queues_per_engine", 6),
            ("num_cp_queues", 8),
            ("max_engine_clk_fcompute", 2500),
            ("fw_version", 80),
            ("capability", CAPABILITY),
            ("sdma_fw_version", 8),
            ("unique_id", 0x6770_756d_6f64_656c),
            ("num_xcc", 1),
            ("family_id", target.family_id.into()),
            ("max_engine_clk_ccompute", 2000),
        ],
        "cpu_cores_count p2p_links_count cpu_core_id_base gds_size_in_kb domain hive_id num_sdma_xgmi_engines \
         local_mem_size debug_prop",
    )?;
    write(
        &gpu.join("mem_banks/0/properties"),
        &[
            ("heap_type", 1),
            ("size_in_bytes", VRAM),
            ("width", 384),
            ("mem_clk_max", 1249),
        ],
        "flags",
    )?;
    for (number, (level, kilobytes)) in [(1, 32), (2, 6144)].into_iter().enumerate() {
        let cache = gpu.join(format!("caches/{number}/properties"));
        write(
            &cache,
            &[
                ("processor_id_low", 0x8000_0000),
                ("level", level),
                ("size", kilobytes),
                ("cache_line_size", 128),
                ("cache_lines_per_tag", 1),
                ("association", 16),
                // HSA_CACHE_TYPE_DATA and HSA_CACHE_TYPE_HSACU
                ("type", 9),
            ],
            "latency",
        )?;
        let mut text = fs::read_to_string(&cache)?;
        text.push_str("sibling_map 1\n");
        fs::write(&cache, text)?;
    }
    write_link(&gpu, 1, 0)?;
    write_text(&root.join("generation_id"), "1\n")
}

/// HSA_CAPABILITY: queue sizes are powers of two (bit 3), doorbells of type 2 (bits 12 and 13). With bit 30, ROCr would
/// require a debugger runtime, which its model mode does not have.
const CAPABILITY: u64 = 1 << 3 | 2 << 12;

/// Writes the PCI Express link of a node.
fn write_link(node: &Path, from: u64, to: u64) -> io::Result<()> {
    write(
        &node.join("io_links/0/properties"),
        &[
            ("type", 2),
            ("node_from", from),
            ("node_to", to),
            ("weight", 20),
            ("flags", 1),
        ],
        "version_major version_minor min_latency max_latency min_bandwidth max_bandwidth recommended_transfer_size",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn property(path: &Path, wanted: &str) -> Option<u64> {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| value.parse().unwrap())
    }

    #[test]
    fn every_part_has_a_folder_and_links_exist_in_both_directions() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), TARGETS[0]).unwrap();
        for node in ["nodes/0", "nodes/1"] {
            let node = folder.path().join(node);
            for (count, parts) in [
                ("mem_banks_count", "mem_banks"),
                ("caches_count", "caches"),
                ("io_links_count", "io_links"),
            ] {
                let counted = property(&node.join("properties"), count).unwrap();
                let found = fs::read_dir(node.join(parts)).map_or(0, Iterator::count);
                assert_eq!(found as u64, counted, "{node:?} {parts}");
                for n in 0..counted {
                    assert!(node.join(format!("{parts}/{n}/properties")).is_file());
                }
            }
        }
        for (from, to) in [(0, 1), (1, 0)] {
            let link = folder
                .path()
                .join(format!("nodes/{from}/io_links/0/properties"));
            assert_eq!(property(&link, "node_from"), Some(from));
            assert_eq!(property(&link, "node_to"), Some(to));
        }
        let gpu = folder.path().join("nodes/1");
        // ROCr's model mode requires these.
        assert_eq!(fs::read_to_string(gpu.join("gpu_id")).unwrap(), "2\n");
        let capability = property(&gpu.join("properties"), "capability").unwrap();
        assert_eq!(capability >> 30 & 1, 0);
        assert!(is_complete(folder.path()));
    }

    #[test]
    fn a_complete_topology_is_kept_and_an_incomplete_one_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("new/topology");
        create(&root, TARGETS[0]).unwrap();
        fs::write(root.join("generation_id"), "7\n").unwrap();
        create(&root, TARGETS[0]).unwrap();
        let kept = fs::read_to_string(root.join("generation_id")).unwrap();
        assert_eq!(kept, "7\n", "a complete topology is not changed");
        fs::remove_file(root.join("generation_id")).unwrap();
        create(&root, TARGETS[0]).unwrap();
        assert!(is_complete(&root), "an incomplete topology is replaced");
        assert_eq!(fs::read_dir(root.parent().unwrap()).unwrap().count(), 1);
    }
}
