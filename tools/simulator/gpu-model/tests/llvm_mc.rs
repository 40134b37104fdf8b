//! Compares the decoder with LLVM. If llvm-mc assembles a line for a target, [`decode`] must decode the words to the text
//! that llvm-mc prints. Both must decode random words to the same instructions.
//!
//! llvm-mc runs once per batch, in the Debian root that `tools/rocm-env setup` creates.

mod debian;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use debian::Test;
use gpu_model::isa::{Architecture, DecodeError, Encoding, Inst, Kind, Spec, decode};

/// An instruction of llvm-mc's output: its text and its words.
type Instruction = (String, Vec<u32>);

/// A target and a wave size.
#[derive(Clone, Copy, PartialEq)]
struct Mode {
    arch: Architecture,
    lanes: usize,
}

const GFX11_WAVE32: Mode = Mode {
    arch: Architecture::Gfx11,
    lanes: 32,
};
const GFX11_WAVE64: Mode = Mode {
    arch: Architecture::Gfx11,
    lanes: 64,
};
const GFX12: Mode = Mode {
    arch: Architecture::Gfx12,
    lanes: 32,
};
const GFX90A: Mode = Mode {
    arch: Architecture::Gfx90a,
    lanes: 64,
};
const GFX942: Mode = Mode {
    arch: Architecture::Gfx942,
    lanes: 64,
};

/// Standard output and standard error of llvm-mc.
fn llvm_mc(mode: Mode, arguments: &[&str], input: String) -> (String, String) {
    let features: &[&str] = match mode {
        GFX11_WAVE32 => &["--mattr=+wavefrontsize32,-wavefrontsize64"],
        GFX11_WAVE64 => &["--mattr=-wavefrontsize32,+wavefrontsize64"],
        _ => &[],
    };
    let mut child = debian::command(&["--no-model", "--", "llvm-mc", "--arch=amdgcn"])
        .arg(format!("--mcpu={}", mode.arch.name()))
        .arg("--show-encoding")
        .args(features)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tools/rocm-env starts");
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    // The exit status does not tell whether llvm-mc ran: it is also nonzero for rejected lines. rocm-env's message starts
    // with its name.
    assert!(
        !stderr.contains("rocm-env: "),
        "llvm-mc needs the Debian root: run `tools/rocm-env setup`: {stderr}"
    );
    writer.join().unwrap().expect("llvm-mc reads its input");
    (String::from_utf8(output.stdout).unwrap(), stderr)
}

fn parse(line: &str) -> Option<Instruction> {
    let (text, comment) = line.split_once("; encoding: [")?;
    let bytes: Vec<u8> = comment
        .trim_end_matches(']')
        .split(',')
        .map(|byte| u8::from_str_radix(byte.trim_start_matches("0x"), 16).expect("a byte"))
        .collect();
    let words = bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    Some((text.trim().to_string(), words))
}

/// llvm-mc's diagnostics whose message starts with `kind`: row (from 0), column (from 1), message.
fn diagnostics<'a>(stderr: &'a str, kind: &str) -> Vec<(usize, usize, &'a str)> {
    let diagnostic = |line: &'a str| {
        let mut parts = line.strip_prefix("<stdin>:")?.splitn(3, ':');
        let row: usize = parts.next()?.parse().ok()?;
        let column = parts.next()?.parse().ok()?;
        let message = parts.next()?.trim();
        message
            .starts_with(kind)
            .then_some((row - 1, column, message))
    };
    stderr.lines().filter_map(diagnostic).collect()
}

/// The instruction of each line, or why llvm-mc rejects the line.
fn assemble(mode: Mode, lines: &[String]) -> Vec<Result<Instruction, String>> {
    let (stdout, stderr) = llvm_mc(mode, &[], lines.join("\n") + "\n");
    let mut errors = vec![None; lines.len()];
    for (row, _, message) in diagnostics(&stderr, "error") {
        errors[row].get_or_insert(message.to_string());
    }
    let mut good = stdout.lines().filter_map(parse);
    let results = errors
        .into_iter()
        .map(|error| match error {
            Some(message) => Err(message),
            None => Ok(good.next().expect("one instruction per line")),
        })
        .collect();
    assert_eq!(good.next(), None, "more instructions than lines");
    results
}

type Sample = [u32; 3];

/// The first instruction that llvm-mc decodes in each sample.
fn disassemble(mode: Mode, samples: &[Sample]) -> Vec<Option<Instruction>> {
    /// `s_nop 0x7abc`, after each sample.
    const MARKER: u32 = 0xbf80_7abc;
    // `s_code_end` of gfx11 and gfx12, `s_nop 0`, so that an instruction that starts in a sample's last word does not include the
    // marker.
    let filler: u32 = if mode.arch.is_gfx9() {
        0xbf80_0000
    } else {
        0xbf9f_0000
    };

    let mut input = String::new();
    let mut line = |words: &[u32]| {
        for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
            write!(input, "0x{byte:02x} ").unwrap();
        }
        input.push('\n');
    };
    for words in samples {
        // llvm-mc would take most of its time for words behind the instruction, and print several lines about each invalid one. If its
        // instruction is longer than the model's, it has the filler in it, which is a difference.
        let length = decode(mode.arch, words).map_or(words.len(), |inst| usize::from(inst.len) / 4);
        line(&[&words[..length], &[filler, filler]].concat());
        line(&[MARKER]);
    }
    let (stdout, stderr) = llvm_mc(mode, &["--disassemble"], input);
    let mut invalid = vec![false; samples.len()];
    for (row, column, _) in diagnostics(&stderr, "warning: invalid instruction") {
        if row % 2 == 0 && column == 1 {
            invalid[row / 2] = true;
        }
    }
    let mut results = Vec::new();
    let mut first = None;
    for (text, words) in stdout.lines().filter_map(parse) {
        if words == [MARKER] {
            let found = first.take();
            let bad = invalid[results.len()];
            results.push(if bad { None } else { found });
        } else if first.is_none() {
            first = Some((text, words));
        }
    }
    assert_eq!(results.len(), samples.len(), "a marker is missing");
    results
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| s.to_string()).collect()
}

/// The name of a register, or of a register range that starts at `first`.
fn range(file: &str, first: usize, bits: usize) -> String {
    match bits.div_ceil(32) {
        1 => format!("{file}{first}"),
        n => format!("{file}[{first}:{}]", first + n - 1),
    }
}

fn is_vgpr(text: &str) -> bool {
    text.starts_with('v') && !text.starts_with("vcc")
}

/// The assembler's forms of source `i` of this kind, the simplest first. VOP3 of gfx9 does not have literals.
fn source(mode: Mode, kind: Kind, i: usize, vector: bool) -> Vec<String> {
    let gfx9 = mode.arch.is_gfx9();
    let bits = kind.bits(mode.lanes);
    let v = range("v", 10 + 20 * i, bits);
    let s = range("s", 8 + 16 * i, bits);
    let halves = || ["l", "h"].map(|half| format!("{v}.{half}")).to_vec();
    match kind {
        Kind::MASK | Kind::R32 | Kind::R64 => {
            vec![s, if bits == 64 { "vcc" } else { "vcc_lo" }.into()]
        }
        Kind::S32 | Kind::LANE => {
            let mut forms = [vec![s], strings(&["vcc_hi", "m0", "5"])].concat();
            if !gfx9 {
                forms.push("null".into());
            }
            if !gfx9 && kind == Kind::S32 {
                forms.push("0x1234".into());
            }
            forms
        }
        Kind::SF16 | Kind::SF32 => strings(&["s8", "vcc_hi", "m0", "0", "-4.0", "0x1234"]),
        Kind::BARRIER => strings(&["-1", "m0", "5", "0"]),
        Kind::NULL => strings(&["null"]),
        Kind::A32 => vec![range("a", 10 + 20 * i, bits)],
        Kind::V16 if !gfx9 => halves(),
        Kind::V16 | Kind::V32 | Kind::V64 | Kind::V128 | Kind::V256 => vec![v],
        Kind::ACC => [vec![v], strings(&["0", "1.0"])].concat(),
        Kind::K32 => strings(&["0x12345678"]),
        Kind::K16 => strings(&["0x1234"]),
        _ if bits > 64 => vec![v],
        _ => {
            let mut forms = if !vector {
                vec![]
            } else if kind.is_true16() && !gfx9 {
                halves()
            } else {
                vec![v]
            };
            forms.push(s);
            forms.extend(strings(&["0", "64", "-1", "-16", "0.5", "-4.0", "src_scc"]));
            forms.extend(strings(&["0x1234", "src_shared_base", "src_private_limit"]));
            forms.extend(strings(match bits {
                64 => &["vcc", "exec", "0.15915494309189532"][..],
                _ => &["vcc_lo", "m0", "exec_hi", "ttmp3", "0.15915494"],
            }));
            forms.extend(strings(match (gfx9, bits) {
                (false, _) => &["null"][..],
                (true, 64) => &["src_vccz", "src_execz", "flat_scratch", "xnack_mask"],
                (true, _) => &["src_vccz", "src_execz", "flat_scratch_hi", "xnack_mask_lo"],
            }));
            forms
        }
    }
}

/// The forms of a destination. Empty if the assembler syntax does not include it.
fn destination(mode: Mode, kind: Kind, vector: bool) -> Vec<String> {
    let gfx9 = mode.arch.is_gfx9();
    let bits = kind.bits(mode.lanes);
    let special = |gfx9_register: &str, registers: &[&str]| {
        let other = if gfx9 { gfx9_register } else { "null" };
        [strings(registers), strings(&[other])].concat()
    };
    match kind {
        Kind::NONE | Kind::EXEC => vec![],
        Kind::MASK if bits == 64 => special("flat_scratch", &["s[24:25]", "vcc"]),
        Kind::MASK => special("", &["s24", "vcc_lo"]),
        Kind::S32 => strings(&["s5", "vcc_hi"]),
        Kind::SF16 | Kind::SF32 => strings(&["s5", "vcc_hi", "m0", "null"]),
        Kind::A32 => strings(&["a5", "a200"]),
        _ if vector && kind.is_true16() && !gfx9 => strings(&["v5.l", "v5.h"]),
        // Pairs of gfx90a are aligned.
        _ if vector => [if gfx9 { 6 } else { 5 }, 200]
            .map(|n| range("v", n, bits))
            .into(),
        _ => match bits {
            32 => special(
                "flat_scratch_lo",
                &["s5", "vcc_lo", "m0", "exec_hi", "ttmp7"],
            ),
            64 => special("xnack_mask", &["s[6:7]", "vcc", "exec", "ttmp[2:3]"]),
            _ => vec![range("s", 8, bits)],
        },
    }
}

/// The forms of SIMM16.
fn immediate(mode: Mode, kind: Kind) -> Vec<String> {
    let gfx9 = mode.arch.is_gfx9();
    strings(match kind {
        Kind::HWREG if gfx9 => &[
            "hwreg(HW_REG_MODE)",
            "hwreg(HW_REG_HW_ID, 4, 7)",
            "hwreg(9, 0, 2)",
            "hwreg(20, 0, 4)",
        ],
        Kind::HWREG if mode == GFX12 => &[
            "hwreg(HW_REG_WAVE_MODE)",
            "hwreg(HW_REG_WAVE_HW_ID1, 4, 7)",
            "hwreg(HW_REG_SHADER_CYCLES_HI)",
            "hwreg(9, 0, 2)",
        ],
        Kind::HWREG => &[
            "hwreg(HW_REG_MODE)",
            "hwreg(HW_REG_HW_ID1, 4, 7)",
            "hwreg(9, 0, 2)",
        ],
        Kind::MSG if gfx9 => &[
            "sendmsg(MSG_INTERRUPT)",
            "sendmsg(MSG_GET_DOORBELL)",
            "0x3ff",
        ],
        Kind::MSG => &[
            "sendmsg(MSG_INTERRUPT)",
            "sendmsg(MSG_DEALLOC_VGPRS)",
            "0x83",
            "0x87",
        ],
        Kind::WAITCNT if gfx9 => &[
            "0",
            "vmcnt(0)",
            "lgkmcnt(3)",
            "vmcnt(17) expcnt(2) lgkmcnt(5)",
            "0xffff",
            "0xcf7f",
        ],
        Kind::WAITCNT => &[
            "0",
            "vmcnt(0)",
            "lgkmcnt(3)",
            "vmcnt(1) expcnt(2) lgkmcnt(5)",
            "0xffff",
            "0xfff7",
        ],
        Kind::GPRIDX if gfx9 => &["gpr_idx(SRC0)", "gpr_idx(SRC1,DST)", "gpr_idx()"],
        Kind::DELAY => &[
            "instid0(VALU_DEP_1)",
            "instid0(TRANS32_DEP_2) | instskip(NEXT) | instid1(SALU_CYCLE_1)",
            "instskip(SKIP_4) | instid1(FMA_ACCUM_CYCLE_1)",
            "0",
        ],
        Kind::DEPCTR => &[
            "depctr_va_vdst(0)",
            "depctr_hold_cnt(0) depctr_vm_vsrc(2)",
            "0xffff",
            "0",
        ],
        _ => &[
            "0", "1", "9", "10", "0x1234", "0x7fff", "0x8000", "0xfffe", "0xffff",
        ],
    })
}

const GFX9_DPP: [&str; 13] = [
    "row_newbcast:3 row_mask:0xf bank_mask:0xf",
    "row_newbcast:15 row_mask:0x5 bank_mask:0x3 bound_ctrl:1",
    "quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf",
    "row_shl:1 row_mask:0xf bank_mask:0xf",
    "row_shr:15 row_mask:0xf bank_mask:0xf bound_ctrl:1",
    "row_ror:7 row_mask:0xf bank_mask:0xf",
    "row_mirror row_mask:0xf bank_mask:0xf",
    "row_half_mirror row_mask:0x0 bank_mask:0x1",
    "wave_shl:1 row_mask:0xf bank_mask:0xf",
    "wave_ror:1 row_mask:0xf bank_mask:0xf",
    "wave_rol:1 row_mask:0xf bank_mask:0xf",
    "row_bcast:15 row_mask:0xa bank_mask:0xf",
    "row_bcast:31 row_mask:0xc bank_mask:0xf",
];

const DPP: [&str; 11] = [
    "quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf",
    "quad_perm:[0,1,2,3] row_mask:0x5 bank_mask:0x3 bound_ctrl:1",
    "row_shl:1 row_mask:0xf bank_mask:0xf",
    "row_shr:15 row_mask:0xf bank_mask:0xf fi:1",
    "row_ror:7 row_mask:0xf bank_mask:0xf bound_ctrl:1 fi:1",
    "row_mirror row_mask:0xf bank_mask:0xf",
    "row_half_mirror row_mask:0x0 bank_mask:0x1",
    "row_share:9 row_mask:0xf bank_mask:0xf",
    "row_xmask:3 row_mask:0xf bank_mask:0xf",
    "dpp8:[7,6,5,4,3,2,1,0]",
    "dpp8:[0,1,2,3,4,5,6,7] fi:1",
];

const GFX12_LOAD: [&str; 6] = [
    "",
    "scope:SCOPE_SE",
    "th:TH_LOAD_NT",
    "th:TH_LOAD_HT scope:SCOPE_DEV",
    "th:TH_LOAD_LU",
    "th:TH_LOAD_BYPASS scope:SCOPE_SYS",
];
const GFX12_STORE: [&str; 6] = [
    "",
    "scope:SCOPE_SE",
    "th:TH_STORE_NT scope:SCOPE_DEV",
    "th:TH_STORE_WB",
    "th:TH_STORE_BYPASS scope:SCOPE_SYS",
    "th:TH_STORE_NT_WB",
];
const GFX12_ATOMIC: [&str; 6] = [
    "",
    "scope:SCOPE_SYS",
    "th:TH_ATOMIC_RETURN",
    "th:TH_ATOMIC_NT scope:SCOPE_SE",
    "th:TH_ATOMIC_NT_RETURN",
    "th:TH_ATOMIC_CASCADE_NT scope:SCOPE_DEV",
];

/// Assembler lines for one row of the tables.
struct Forms {
    spec: &'static Spec,
    name: String,
    mode: Mode,
    lines: Vec<String>,
}

impl Forms {
    fn is_gfx9(&self) -> bool {
        self.mode.arch.is_gfx9()
    }

    fn push(&mut self, suffix: &str, operands: &[String], modifiers: &str) {
        let line = format!("{}{suffix} {} {modifiers}", self.name, operands.join(", "));
        self.lines.push(line.trim().to_string());
    }

    /// Adds a line for each form of each operand. The other operands have their simplest form.
    fn vary(&mut self, suffix: &str, operands: &[Vec<String>], modifiers: &str) {
        let plain: Vec<String> = operands.iter().map(|forms| forms[0].clone()).collect();
        self.push(suffix, &plain, modifiers);
        for (i, forms) in operands.iter().enumerate() {
            for form in &forms[1..] {
                let mut operands = plain.clone();
                operands[i] = form.clone();
                self.push(suffix, &operands, modifiers);
            }
        }
    }

    fn destinations(&self, vector: bool) -> Vec<Vec<String>> {
        let kinds = self.spec.dst.iter();
        kinds
            .map(|&kind| destination(self.mode, kind, vector))
            .filter(|forms| !forms.is_empty())
            .collect()
    }

    fn source_kinds(&self) -> Vec<Kind> {
        let kinds = self.spec.src.iter().copied();
        kinds.filter(|&kind| kind != Kind::NONE).collect()
    }

    fn sources(&self, vector: bool) -> Vec<Vec<String>> {
        let form = |(i, kind): (usize, Kind)| {
            if kind.is_immediate() {
                immediate(self.mode, kind)
            } else {
                source(self.mode, kind, i, vector)
            }
        };
        let kinds = self.source_kinds().into_iter().enumerate();
        kinds.map(form).collect()
    }

    fn salu(&mut self) {
        let mut sources = self.sources(false);
        if self.spec.format == Encoding::Sopk && sources.len() == 2 {
            if !matches!(self.spec.src[0], Kind::K32 | Kind::NULL) {
                // SDST is a source, and can only be a register.
                sources[0] = strings(&["s5", "vcc_hi", "null"]);
                sources[0].retain(|form| !self.is_gfx9() || form != "null");
            }
            if self.spec.src[1] == Kind::HWREG {
                sources.swap(0, 1);
            }
        }
        if self.spec.src.contains(&Kind::K32) && self.spec.format == Encoding::Sop2 {
            // K is the only literal.
            sources
                .iter_mut()
                .for_each(|forms| forms.retain(|form| form != "0x1234"));
        }
        let operands = [self.destinations(false), sources].concat();
        self.vary("", &operands, "");
    }

    fn smem(&mut self) {
        if self.spec.dst[0] == Kind::NONE {
            return self.push("", &[], "");
        }
        let mut dst = self.destinations(false);
        dst[0].retain(|form| form != "m0" && !form.starts_with("exec"));
        if self.spec.src[0] == Kind::NONE {
            return self.vary("", &dst, "");
        }
        let bits = self.spec.src[0].bits(32);
        let base = [4, 8, 96].map(|n| range("s", n, bits)).to_vec();
        let gfx12 = self.mode == GFX12;
        let offsets = [
            "0x10",
            if self.is_gfx9() || gfx12 {
                "0x0"
            } else {
                "null"
            },
            if gfx12 { "0x7fffff" } else { "0xfffff" },
            "s3",
            "vcc_lo",
            "m0",
            "ttmp5",
            "-0x4",
            if gfx12 { "-0x800000" } else { "-0x100000" },
        ];
        // The offset of a buffer load is not negative.
        let count = if bits == 128 { 7 } else { 9 };
        let plain = [dst, vec![base, strings(&offsets[..count])]].concat();
        let modifiers: &[&str] = match self.mode.arch {
            Architecture::Gfx12 => &GFX12_LOAD,
            Architecture::Gfx11 => &["", "glc", "dlc", "glc dlc"],
            _ => &["", "glc"],
        };
        for modifiers in modifiers {
            self.vary("", &plain, modifiers);
        }
        let both = [&plain[..2], &[strings(&["s3"])]].concat();
        self.vary("", &both, "offset:0x1");
        self.vary("", &both, &format!("offset:0xffff {}", modifiers[1]));
    }

    fn e32(&mut self) {
        let vcc = strings(&[if self.mode.lanes == 32 {
            "vcc_lo"
        } else {
            "vcc"
        }]);
        let mut dst = self.destinations(true);
        for (forms, &kind) in dst.iter_mut().zip(&self.spec.dst) {
            if kind == Kind::MASK {
                *forms = vcc.clone();
            }
        }
        let kinds = self.source_kinds();
        let constant_k = kinds
            .iter()
            .any(|kind| matches!(kind, Kind::K16 | Kind::K32));
        let mut src = self.sources(true);
        for (i, (forms, kind)) in src.iter_mut().zip(&kinds).enumerate() {
            match kind {
                Kind::MASK => *forms = vcc.clone(),
                Kind::K16 | Kind::K32 => {}
                // K is the only literal.
                _ if i == 0 => forms.retain(|form| !(constant_k && form == "0x1234")),
                _ => forms.retain(|form| is_vgpr(form)),
            }
        }
        let suffix = if self.spec.has_e64() { "_e32" } else { "" };
        self.vary(suffix, &[dst.clone(), src.clone()].concat(), "");
        if self.is_gfx9() {
            return self.gfx9_controls(&dst, &src);
        }
        if !self.spec.has_dpp() {
            return;
        }
        let suffix = match self.spec.format {
            Encoding::Vopc => "",
            _ => "_dpp",
        };
        src[0].retain(|form| is_vgpr(form));
        for control in DPP {
            self.vary(suffix, &[dst.clone(), src.clone()].concat(), control);
        }
        self.signs(suffix, &dst, &src, DPP[0]);
    }

    /// NEG and ABS of each float source.
    fn signs(&mut self, suffix: &str, dst: &[Vec<String>], src: &[Vec<String>], modifiers: &str) {
        for (i, kind) in self.source_kinds().into_iter().enumerate() {
            if !kind.is_float() {
                continue;
            }
            // VOP3SD does not have ABS.
            let signs = [("-", ""), ("|", "|"), ("-|", "|")];
            let count = if self.spec.dst[1] == Kind::NONE { 3 } else { 1 };
            for (before, after) in &signs[..count] {
                let mut src = src.to_vec();
                src[i] = src[i]
                    .iter()
                    .filter(|form| is_vgpr(form) || form.starts_with('s'))
                    .map(|form| format!("{before}{form}{after}"))
                    .collect();
                self.vary(suffix, &[dst, &src].concat(), modifiers);
            }
        }
    }

    fn outputs(&self) -> Vec<&'static str> {
        let mut outputs = vec![];
        if self.spec.has_clamp() {
            outputs.push("clamp");
        }
        if self.spec.has_omod() {
            outputs.extend(["mul:2", "mul:4", "div:2", "clamp mul:2"]);
        }
        outputs
    }

    fn e64(&mut self) {
        let (dst, mut src) = (self.destinations(true), self.sources(true));
        if self.is_gfx9() {
            for forms in &mut src {
                forms.retain(|form| form != "0x1234");
            }
        }
        let suffix = match self.spec.format {
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc => "_e64",
            _ => "",
        };
        let all = [dst.clone(), src.clone()].concat();
        self.vary(suffix, &all, "");
        for output in self.outputs() {
            self.vary(suffix, &all, output);
        }
        self.signs(suffix, &dst, &src, "");
        if self.is_gfx9() {
            return self.gfx9_op_sel(&all);
        }
        if matches!(self.spec.name, "V_PERMLANE16_B32" | "V_PERMLANEX16_B32") {
            for modifiers in ["op_sel:[1,0]", "op_sel:[0,1]", "op_sel:[1,1]"] {
                self.vary(suffix, &all, modifiers);
            }
        }
        if !self.spec.has_dpp() {
            return;
        }
        for forms in &mut src {
            if is_vgpr(&forms[0]) {
                forms.retain(|form| is_vgpr(form));
            }
        }
        // In gfx12, source 1 can be scalar.
        if self.mode == GFX12
            && self
                .source_kinds()
                .get(1)
                .is_some_and(|kind| kind.bits(64) <= 32)
        {
            let mut all = [dst.clone(), src.clone()].concat();
            let first = dst.len();
            all[first + 1] = strings(&["s28", "null", "m0", "0", "-16", "src_scc"]);
            all[first + 1].retain(|form| is_vgpr(&src[1][0]) || form.starts_with('s'));
            self.vary("_e64_dpp", &all, DPP[1]);
            self.vary("_e64_dpp", &all, DPP[9]);
        }
        let all = [dst.clone(), src.clone()].concat();
        for control in DPP {
            self.vary("_e64_dpp", &all, control);
        }
        for output in self.outputs() {
            self.vary("_e64_dpp", &all, &format!("{output} {}", DPP[0]));
        }
        self.signs("_e64_dpp", &dst, &src, DPP[9]);
    }

    fn vop3p(&mut self) {
        let kinds = self.source_kinds();
        let (dst, mut src) = (self.destinations(true), self.sources(true));
        if self.is_gfx9() {
            for forms in &mut src {
                forms.retain(|form| form != "0x1234");
            }
        }
        let all = [dst.clone(), src.clone()].concat();
        self.vary("", &all, "");
        if self.spec.has_clamp() {
            self.vary("", &all, "clamp");
        }
        let packed_floats = kinds
            .iter()
            .all(|kind| matches!(kind, Kind::PKF16 | Kind::PKBF16 | Kind::PKF32));
        for i in 0..=kinds.len() {
            let bits: Vec<_> = (0..kinds.len())
                .map(|j| if i == j { "1" } else { "0" })
                .collect();
            let bits = bits.join(",");
            let mut names = vec![];
            let dot = self.mode.arch == Architecture::Gfx942 && self.spec.name.starts_with("V_DOT");
            if self.spec.has_op_sel() && !dot {
                names.extend(["op_sel", "op_sel_hi"]);
            }
            if packed_floats {
                names.extend(["neg_lo", "neg_hi"]);
            }
            for name in names {
                self.vary("", &all, &format!("{name}:[{bits}]"));
            }
        }
        // The signed sources.
        if self.name.contains("_iu") {
            self.vary("", &all, "neg_lo:[1,0,0]");
            self.vary("", &all, "neg_lo:[1,1,0]");
        }
        if kinds[0] == Kind::MIX {
            self.signs("", &dst, &src, "");
        }
        if self.spec.has_dpp() && !self.is_gfx9() {
            let plain: Vec<_> = all.iter().map(|forms| forms[..1].to_vec()).collect();
            for control in DPP {
                self.vary("_e64_dpp", &plain, control);
            }
        }
    }

    /// The forms with DPP and SDWA.
    fn gfx9_controls(&mut self, dst: &[Vec<String>], src: &[Vec<String>]) {
        if src.is_empty() {
            return;
        }
        if self.spec.has_dpp() && self.spec.format != Encoding::Vopc {
            let mut src = src.to_vec();
            src[0].retain(|form| is_vgpr(form));
            let wide = self.spec.has_wide_operand();
            let controls = if wide { &GFX9_DPP[..2] } else { &GFX9_DPP[..] };
            for control in controls {
                self.vary("_dpp", &[dst, &src].concat(), control);
            }
            self.signs("_dpp", dst, &src, GFX9_DPP[0]);
        }
        if !self.spec.has_sdwa() {
            return;
        }
        let kinds = self.source_kinds();
        let mut dst = dst.to_vec();
        if self.spec.format == Encoding::Vopc {
            dst[0] = strings(&["vcc", "s[10:11]"]);
        }
        let mut src = src.to_vec();
        for (i, forms) in src.iter_mut().enumerate() {
            if kinds[i] != Kind::MASK {
                *forms = vec![format!("v{}", 10 + 20 * i), "s8".into(), "ttmp3".into()];
            }
        }
        // 64-bit results and sources have another name.
        let all = [dst.clone(), src.clone()].concat();
        let two = kinds.get(1).is_some_and(|&kind| kind != Kind::MASK);
        let parts = ["BYTE_0", "BYTE_3", "WORD_0", "WORD_1", "DWORD"];
        for (i, part) in parts.into_iter().enumerate() {
            let other = parts[(i + 2) % 5];
            let unused = ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"][i % 3];
            let fp8 = self.spec.converts_8_bit_floats();
            let mut control = match self.spec.format {
                Encoding::Vopc => String::new(),
                _ if fp8 => String::new(),
                _ => format!("dst_sel:{part} dst_unused:{unused} "),
            };
            control += &format!("src0_sel:{other}");
            if two {
                control += &format!(" src1_sel:{part}");
            }
            self.vary("_sdwa", &all, &control);
            if i == 0 {
                let compares = self.spec.format == Encoding::Vopc;
                let float = self.spec.dst[0].is_float();
                for output in self.outputs() {
                    if compares || output != "clamp" && !float {
                        continue;
                    }
                    self.vary("_sdwa", &all, &format!("{output} {control}"));
                }
                if kinds[0] != Kind::PKF16 {
                    self.signs("_sdwa", &dst, &src, &control);
                }
            }
            for (i, kind) in kinds.iter().enumerate() {
                if self.spec.has_sext(i) && *kind != Kind::MASK {
                    let mut all = all.clone();
                    let at = all.len() - kinds.len() + i;
                    all[at] = vec![format!("sext({})", all[at][0])];
                    self.vary("_sdwa", &all, &control);
                }
            }
        }
    }

    fn gfx9_op_sel(&mut self, all: &[Vec<String>]) {
        if !self.spec.has_op_sel() || self.spec.format != Encoding::Vop3 {
            return;
        }
        let count = self.source_kinds().len() + 1;
        let plain: Vec<_> = all.iter().map(|forms| forms[..1].to_vec()).collect();
        let last = (1 << count) - 1;
        for bits in 1..=last {
            let list: Vec<_> = (0..count)
                .map(|i| if bits >> i & 1 == 1 { "1" } else { "0" })
                .collect();
            // The bits do not depend on the operands' forms.
            let all = if bits == last { all } else { &plain };
            self.vary("", all, &format!("op_sel:[{}]", list.join(",")));
        }
    }

    fn mai(&mut self) {
        let kinds = self.source_kinds();
        if kinds.len() < 3 {
            let mut src = self.sources(true);
            src[0].retain(|form| form != "0x1234");
            let all = [self.destinations(true), src].concat();
            return self.vary("", &all, "");
        }
        for (acc_cd, acc_a, acc_b) in [
            (false, false, false),
            (true, false, false),
            (true, true, true),
            (false, true, false),
            (false, false, true),
        ] {
            let register =
                |acc, n, kind: Kind| range(if acc { "a" } else { "v" }, n, kind.bits(64));
            let mut operands = vec![
                register(acc_cd, 64, self.spec.dst[0]),
                register(acc_a, 2, kinds[0]),
                register(acc_b, 10, kinds[1]),
                register(acc_cd && kinds[2] != Kind::V32, 96, kinds[2]),
            ];
            let f64 = self.spec.name.contains("_F64_");
            let blgp = if f64 && self.mode.arch == Architecture::Gfx942 {
                "neg:[1,0,1]"
            } else {
                "blgp:5"
            };
            self.push("", &operands, "");
            let sparse = kinds[2] == Kind::V32;
            if !f64 {
                self.push("", &operands, "cbsz:1 abid:1");
            }
            let xf32 = self.spec.name.ends_with("XF32");
            let fp8 = self.spec.name.contains("F8_");
            if !sparse
                && !xf32
                && !fp8
                && !self.name.contains("i32_16x16x32")
                && !self.name.contains("i32_32x32x16")
            {
                self.push("", &operands, blgp);
            }
            if !sparse {
                operands[3] = "1.0".into();
                self.push("", &operands, "");
                operands[3] = "-5".into();
                self.push("", &operands, "");
            }
        }
    }

    fn mubuf(&mut self) {
        if self.spec.src[0] == Kind::NONE {
            self.push("", &[], "");
            if self.spec.name == "BUFFER_WBL2" || self.spec.name == "BUFFER_INV" {
                let all = match self.mode.arch {
                    Architecture::Gfx942 => &["sc0", "sc1", "sc0 sc1"][..],
                    _ => &[],
                };
                for modifiers in all {
                    self.push("", &[], modifiers);
                }
            }
            return;
        }
        let kind = match self.spec.dst[0] {
            Kind::NONE => self.spec.src[1],
            kind => kind,
        };
        let cache = self.cache_modifiers();
        for data in [range("v", 6, kind.bits(64)), range("a", 6, kind.bits(64))] {
            for soffset in ["s33", "0", "m0", "64", "1.0"] {
                for offset in ["", "offset:4", "offset:4095"] {
                    for cache in cache {
                        for (addr, offen) in [("off", ""), ("v4", "offen")] {
                            let operands = [&data, addr, "s[8:11]", soffset].map(String::from);
                            let modifiers = format!("{offen} {offset} {cache}");
                            self.push("", &operands, &modifiers);
                        }
                    }
                }
            }
        }
    }

    fn cache_modifiers(&self) -> &'static [&'static str] {
        match self.mode.arch {
            Architecture::Gfx942 => &["", "sc0", "nt", "sc1", "sc0 nt sc1"],
            Architecture::Gfx90a => &["", "glc", "slc", "scc", "glc slc scc"],
            Architecture::Gfx11 => &["", "glc", "slc", "dlc", "glc slc dlc"],
            Architecture::Gfx12 if self.spec.is_atomic() => &GFX12_ATOMIC,
            Architecture::Gfx12 if self.spec.dst[0] == Kind::NONE => &GFX12_STORE,
            Architecture::Gfx12 => &GFX12_LOAD,
        }
    }

    fn flat(&mut self) {
        let to_lds = self.spec.dst[0] == Kind::NONE && self.spec.src[1] == Kind::NONE;
        if to_lds && self.mode == GFX12 {
            // The instructions for caches.
            for modifiers in ["", "scope:SCOPE_SE", "scope:SCOPE_DEV", "scope:SCOPE_SYS"] {
                self.push("", &[], modifiers);
            }
            return;
        }
        let offsets: &[&str] = match self.spec.format {
            _ if self.mode == GFX12 => &["", "offset:8388607", "offset:-8388608"],
            Encoding::Flat => &["", "offset:1", "offset:4095"],
            _ => &["", "offset:4095", "offset:-4096", "offset:-1"],
        };
        // The VGPR address and the base.
        let addresses: &[(&str, &str)] = match (self.spec.format, self.mode.arch) {
            (Encoding::Flat, _) => &[("v[4:5]", "")],
            (Encoding::Global, _) if self.spec.src[0] == Kind::NONE => {
                &[("", "off"), ("", "s[8:9]")]
            }
            (Encoding::Global, _) => &[("v[4:5]", "off"), ("v4", "s[8:9]"), ("v4", "vcc")],
            (_, Architecture::Gfx90a) => &[("v4", "off"), ("off", "s8"), ("off", "vcc_hi")],
            _ => &[
                ("v4", "off"),
                ("off", "s8"),
                ("v4", "s8"),
                ("off", "off"),
                ("v4", "vcc_hi"),
            ],
        };
        let only_vgprs = to_lds || !self.is_gfx9();
        for file in if only_vgprs { &["v"][..] } else { &["v", "a"] } {
            let register = |kind: Kind, n| match kind {
                Kind::NONE => vec![],
                kind => vec![range(file, n, kind.bits(32))],
            };
            let dst = register(self.spec.dst[0], 20);
            let data = register(self.spec.src[1], 30);
            let atomic = !dst.is_empty() && !data.is_empty();
            for (address, base) in addresses {
                for offset in offsets {
                    for cache in self.cache_modifiers() {
                        let returns = !atomic
                            || ["glc", "sc0", "RETURN"]
                                .iter()
                                .any(|name| cache.contains(name));
                        // LLVM's assembler does not have these forms.
                        let refused = ["GLOBAL_ATOMIC_ADD_F32", "GLOBAL_ATOMIC_PK_ADD_F16"];
                        if *file == "a"
                            && atomic
                            && returns
                            && self.mode.arch == Architecture::Gfx942
                            && refused.contains(&self.spec.name)
                        {
                            continue;
                        }
                        // It does not encode these bits, although it accepts them.
                        let scope = cache.contains("scc") || cache.contains("sc1");
                        let float = self.spec.name.ends_with("_F64")
                            || self.mode.arch == Architecture::Gfx90a
                                && refused.contains(&self.spec.name);
                        if scope && float {
                            continue;
                        }
                        let dst = if returns { &dst[..] } else { &[] };
                        let mut operands = [dst, &strings(&[address]), &data].concat();
                        operands.push(base.to_string());
                        operands.retain(|operand| !operand.is_empty());
                        self.push("", &operands, format!("{offset} {cache}").trim());
                    }
                }
            }
        }
    }

    fn ds(&mut self) {
        if self.spec.name == "DS_NOP" {
            return self.push("", &[], "");
        }
        let mut operands = vec![];
        if self.spec.dst[0] != Kind::NONE {
            operands.push(range("v", 20, self.spec.dst[0].bits(32)));
        }
        for (i, kind) in self.spec.src.iter().enumerate() {
            if *kind != Kind::NONE {
                operands.push(range("v", 2 + 10 * i, kind.bits(32)));
            }
        }
        let offsets: &[&str] = if self.spec.has_two_offsets() {
            &["", "offset0:1", "offset1:255", "offset0:7 offset1:9"]
        } else if self.spec.name == "DS_SWIZZLE_B32" {
            &[
                "",
                "offset:swizzle(QUAD_PERM,3,1,0,2)",
                "offset:swizzle(SWAP,8)",
                "offset:swizzle(REVERSE,16)",
                "offset:swizzle(BROADCAST,8,3)",
                "offset:swizzle(BITMASK_PERM,\"0p1i0\")",
                "offset:0x8123",
            ]
        } else {
            &["", "offset:1", "offset:255", "offset:65535"]
        };
        let gds = if self.spec.is_gds() { "gds" } else { "" };
        for offset in offsets {
            self.push("", &operands, format!("{offset} {gds}").trim());
        }
    }
}

/// All pairs of VOPD operations.
fn dual_lines(arch: Architecture) -> Vec<String> {
    let half = |spec: &Spec, dst: &str, src0: &str, vsrc1: &str| {
        let mut operands = strings(&[dst, src0]);
        for kind in &spec.src[1..] {
            match kind {
                Kind::NONE | Kind::MASK => {}
                Kind::K32 => operands.push("0x12345678".into()),
                _ => operands.push(vsrc1.into()),
            }
        }
        let name = spec.name.to_lowercase().replacen("v_", "v_dual_", 1);
        format!("{name} {}", operands.join(", "))
    };
    let all = arch.rows();
    let specs: Vec<_> = all.filter(|spec| spec.format == Encoding::Vopd).collect();
    let sources = [
        ("v1", "v2"),
        ("1.0", "-5"),
        ("0x12345678", "v2"),
        ("vcc_lo", "vcc_lo"),
        ("s4", "v2"),
        ("v1", "s5"),
    ];
    let mut lines = vec![];
    for x in specs.iter().filter(|spec| spec.code < 16) {
        for y in &specs {
            // A scalar register, VCC and a literal are too many scalar values for one instruction.
            let has = |kind| x.src.contains(&kind) || y.src.contains(&kind);
            let full = has(Kind::MASK) && has(Kind::K32);
            for (x0, y0) in &sources[..if full { 3 } else { 6 }] {
                let (x, y) = (half(x, "v8", x0, "v6"), half(y, "v13", y0, "v201"));
                lines.push(format!("{x} :: {y}"));
            }
        }
    }
    lines
}

/// Whether the wave size is the size of an operand in the text, which EXEC is not in.
fn depends_on_lanes(spec: &Spec) -> bool {
    let mut kinds = spec.dst.iter().chain(&spec.src);
    kinds.any(|&kind| kind != Kind::EXEC && kind.bits(32) != kind.bits(64))
}

fn every_line(mode: Mode) -> Vec<String> {
    let mut lines = vec![];
    for spec in mode.arch.rows() {
        // Waves of 32 and 64 lanes have the same instructions, with masks and sums of products in fewer or more registers.
        if mode == GFX11_WAVE64 && !depends_on_lanes(spec) {
            continue;
        }
        let mut forms = Forms {
            spec,
            name: spec.name.to_lowercase(),
            mode,
            lines: vec![],
        };
        match spec.format {
            Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk | Encoding::Sopp => {
                forms.salu()
            }
            Encoding::Smem => forms.smem(),
            Encoding::Mubuf => forms.mubuf(),
            Encoding::Mai => forms.mai(),
            // Not the format of a table.
            Encoding::Cache | Encoding::ScalarFloat => unreachable!(),
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc => {
                forms.e32();
                if spec.has_e64() {
                    forms.e64();
                }
            }
            Encoding::Vop3 | Encoding::Vop3Sd => forms.e64(),
            Encoding::Vop3p => forms.vop3p(),
            // `dual_lines` adds these.
            Encoding::Vopd => {}
            Encoding::Ds => forms.ds(),
            Encoding::Flat | Encoding::Global | Encoding::Scratch => forms.flat(),
        }
        lines.append(&mut forms.lines);
    }
    // Only wave32 has VOPD.
    if mode.lanes == 32 {
        lines.append(&mut dual_lines(mode.arch));
    }
    lines
}

/// Fails if there are differences, and prints one per mnemonic. A difference is an instruction's text and a message.
fn report(what: &str, total: usize, differences: Vec<(String, String)>) {
    let count = differences.len();
    let mut seen = HashSet::new();
    let mut examples = String::new();
    for (text, difference) in differences {
        let mnemonic = text.split(' ').next().unwrap().to_string();
        if seen.insert(mnemonic) && seen.len() <= 60 {
            examples += &difference;
            examples.push('\n');
        }
    }
    assert!(count == 0, "{count} of {total} {what}, such as\n{examples}");
}

/// Removes OP_SEL if the names of true16 registers include it. LLVM sometimes prints it nevertheless.
fn without_redundancy(text: &str) -> String {
    let true16 = text.contains(".l") || text.contains(".h");
    match text.split_once(" op_sel:[") {
        Some((before, after)) if true16 => {
            let (_, after) = after.split_once(']').expect("a closed list");
            format!("{before}{after}")
        }
        _ => text.to_string(),
    }
}

/// LLVM's text and a message if text or length of the decoder and LLVM differ.
fn difference(mode: Mode, words: &[u32], llvm: &Instruction) -> Option<(String, String)> {
    let (text, llvm_words) = llvm;
    match decode(mode.arch, words) {
        Ok(inst) => {
            let model = inst.text(mode.lanes).to_string();
            let same = without_redundancy(&model) == without_redundancy(text)
                && usize::from(inst.len) == 4 * llvm_words.len();
            let difference = format!(
                "{words:08x?} llvm: {text} ({} bytes)\n  model: {model} ({} bytes)",
                4 * llvm_words.len(),
                inst.len
            );
            (!same).then(|| (text.clone(), difference))
        }
        Err(error) => Some((
            text.clone(),
            format!("{words:08x?} llvm: {text}\n  model: {error}"),
        )),
    }
}

fn forms_decode_as_written(mode: Mode) {
    let lines = every_line(mode);
    let expected = if mode == GFX11_WAVE32 { 30_000 } else { 20_000 };
    assert!(lines.len() > expected, "only {} lines", lines.len());
    let mut rejected = vec![];
    let mut different = vec![];
    let mut bus = 0;
    for (line, result) in lines.iter().zip(assemble(mode, &lines)) {
        match result {
            Ok(llvm) => different.extend(difference(mode, &llvm.1, &llvm)),
            // Not for the decoder: gfx9 reads at most one scalar register.
            Err(error) if error.contains("constant bus restrictions") => bus += 1,
            Err(error) => rejected.push((line.clone(), format!("{line}: {error}"))),
        }
    }
    assert!(bus < lines.len() / 50, "{bus} lines have too many scalars");
    report(
        "lines that llvm-mc does not assemble",
        lines.len(),
        rejected,
    );
    report(
        "instructions that decode differently",
        lines.len(),
        different,
    );
}

/// SplitMix64.
struct Random(u64);

/// Changes a word at which llvm-mc would crash if the instruction before ended there: matrices that are not in registers,
/// MTBUF, invalid selections of SDWA.
fn without_crash(word: u32) -> u32 {
    match word {
        _ if word >> 23 == 0b1_1010_0111 || word >> 26 == 0b111010 => word & 0x7fff_fdff,
        _ if word >> 31 == 0 && word & 0x1ff == 249 => word ^ 2,
        _ if matches!(word >> 26, 0b110100 | 0b111000) => word & 0x7fff_fdff,
        _ => word,
    }
}

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) as u32
    }
    fn one_in(&mut self, n: u32) -> bool {
        self.next().is_multiple_of(n)
    }
    fn bits(&mut self, width: u32) -> u32 {
        self.next() & ((1 << width) - 1)
    }
    /// A field that is often `usual`.
    fn field(&mut self, width: u32, usual: u32) -> u32 {
        if self.one_in(2) {
            usual
        } else {
            self.bits(width)
        }
    }
    /// A field that is usually zero.
    fn seldom(&mut self, width: u32) -> u32 {
        if self.one_in(8) { self.bits(width) } else { 0 }
    }
    /// The second word of DS: four VGPRs, usually only the first one.
    fn vectors(&mut self) -> u32 {
        self.bits(8) | self.field(8, 0) << 8 | self.field(8, 0) << 16 | self.field(8, 0) << 24
    }
    /// The second word of FLAT. `null`: the code for no SADDR.
    fn flat_operands(&mut self, null: u32) -> u32 {
        self.bits(8)
            | self.field(8, 0) << 8
            | self.field(7, null) << 16
            | self.seldom(1) << 23
            | self.field(8, 0) << 24
    }
    /// A nine-bit source: often a VGPR, 0, DPP or a literal.
    fn source(&mut self) -> u32 {
        match self.bits(3) {
            0..=2 => 256 + self.bits(8),
            3 => 0,
            4 => 128,
            5 => [233, 234, 250, 255][self.bits(2) as usize],
            _ => self.bits(9),
        }
    }
    /// Random words of one of the families of formats of a target.
    fn sample_of(&mut self, arch: Architecture, number: u32) -> Sample {
        if arch.is_gfx9() {
            let [first, rest @ ..] = self.gfx9_sample(number % 10);
            let [second, third] = rest.map(without_crash);
            [first, second, third]
        } else if arch == Architecture::Gfx12 {
            self.gfx12_sample(number % 11)
        } else {
            self.sample(number % 11)
        }
    }
    /// Random words of one of 11 families of formats of gfx12.
    fn gfx12_sample(&mut self, family: u32) -> Sample {
        match family {
            2 => {
                let word = 0xf400_0000 | self.bits(6) << 13 | self.bits(13) | self.seldom(6) << 19;
                let offset = self.bits(24) | self.seldom(1) << 24 | self.field(7, 124) << 25;
                [word, offset, self.next()]
            }
            8 => {
                let word = 0xec00_0000
                    | (self.bits(2) % 3) << 24
                    | self.bits(8) << 14
                    | self.field(7, 124)
                    | self.seldom(7) << 7
                    | self.seldom(2) << 22;
                let second = self.field(8, 0)
                    | self.seldom(9) << 8
                    | self.seldom(1) << 17
                    | self.field(5, 0) << 18
                    | self.field(8, 0) << 23
                    | self.seldom(1) << 31;
                [word, second, self.bits(8) | self.field(24, 0) << 8]
            }
            _ => self.sample(family),
        }
    }
    /// A nine-bit source of gfx9: often a VGPR, a constant, SDWA, DPP or a literal.
    fn gfx9_source(&mut self) -> u32 {
        match self.bits(3) {
            0..=3 => 256 + (self.bits(8) & !self.field(1, 1)),
            4 => 128,
            5 => [249, 250, 255, 2][self.bits(2) as usize],
            _ => self.bits(9),
        }
    }
    /// A source of VOP3. llvm-mc crashes at some literals.
    fn gfx9_source3(&mut self) -> u32 {
        match self.gfx9_source() {
            249 | 250 | 255 => 256,
            code => code,
        }
    }
    /// A valid selection of SDWA: llvm-mc crashes otherwise.
    fn gfx9_part(&mut self) -> u32 {
        self.bits(3) % 7
    }
    /// Random words of one of 10 families of formats of gfx9.
    fn gfx9_sample(&mut self, family: u32) -> Sample {
        let (a, b, c) = (self.next(), self.next(), self.next());
        let even = !self.field(1, 1);
        // DPP.
        let dpp = self.bits(8)
            | self.field(9, 0x155) << 8
            | self.seldom(2) << 17
            | self.bits(1) << 19
            | self.seldom(4) << 20
            | self.bits(8) << 24;
        let sdwa = self.bits(8)
            | self.gfx9_part() << 8
            | (self.gfx9_part() % 3) << 11
            | self.seldom(3) << 13
            | self.gfx9_part() << 16
            | self.seldom(3) << 19
            | self.seldom(2) << 22
            | self.gfx9_part() << 24
            | self.seldom(5) << 27;
        let sources = self.gfx9_source3()
            | self.gfx9_source3() << 9
            | if self.one_in(2) {
                0
            } else {
                self.gfx9_source3() << 18
            }
            | self.seldom(2) << 27
            | self.seldom(3) << 29;
        let modifiers = self.seldom(3) << 8 | self.seldom(4) << 11 | self.seldom(1) << 15;
        let vdst = self.bits(8) & even;
        match family {
            0 => [0x8000_0000 | self.bits(30), b, c],
            1 => [0xbe80_0000 | self.bits(24) & 0x1ff_ffff, b, c],
            2 => {
                let word = 0xc000_0000
                    | self.bits(8) << 18
                    | self.field(1, 1) << 17
                    | self.seldom(4) << 13
                    | self.bits(13);
                let second = self.field(21, 0x10) | self.seldom(4) << 21 | self.seldom(7) << 25;
                [word, second, c]
            }
            3 => {
                let src0 = self.gfx9_source();
                let control = if src0 == 249 { sdwa } else { dpp };
                let word = a & 0x7e01_fe00 | vdst << 17 | src0;
                // v_swap_b32 and v_accvgpr_mov_b32, which only read registers.
                let register = matches!(word >> 25 << 8 | word >> 9 & 0xff, 0x3f51 | 0x3f52);
                [word | u32::from(register) << 8, control, c]
            }
            4 => {
                let src0 = self.gfx9_source();
                [0x7c00_0000 | a & 0x1ff_fe00 | src0, sdwa & !0x7f00, c]
            }
            5 => [
                0xd000_0000 | (self.bits(10) % 0x380) << 16 | modifiers | (vdst % 255),
                sources,
                c,
            ],
            6 => {
                let op = self.bits(7);
                let word = 0xd380_0000 | op << 16 | modifiers | vdst;
                // llvm-mc crashes if the matrices are not in registers.
                let matrices = if op >= 0x3e {
                    1 << 8 | 1 << 17 | 1 << 26
                } else {
                    0
                };
                let sources = sources ^ 0x1800_0000 | matrices;
                [word ^ self.field(1, 1) << 14, sources, c]
            }
            7 => {
                let word = 0xd800_0000
                    | self.bits(8) << 17
                    | self.seldom(1) << 16
                    | self.seldom(1) << 25
                    | self.bits(16);
                [word, self.vectors(), c]
            }
            8 => {
                let word = 0xdc00_0000 | self.bits(12) << 14 | self.seldom(1) << 13 | self.bits(13);
                [word, self.flat_operands(127), c]
            }
            _ => {
                let word = 0xe000_0000
                    | self.bits(7) << 18
                    | self.seldom(4) << 14
                    | self.bits(1) << 12
                    | self.bits(12);
                let operands = self.field(8, 0)
                    | self.field(8, 0) << 8
                    | self.bits(5) << 16
                    | self.seldom(3) << 21
                    | (self.field(8, 128) % 255) << 24;
                [word, operands, c]
            }
        }
    }
    /// Random words of one of 11 families of formats. They are valid more often than uniformly distributed words.
    fn sample(&mut self, family: u32) -> Sample {
        let (a, b, c) = (self.next(), self.next(), self.next());
        let dpp = self.bits(8)
            | self.field(9, 0xe4) << 8
            | self.seldom(1) << 17
            | self.bits(2) << 18
            | self.seldom(4) << 20
            | self.bits(8) << 24;
        let sources = self.source()
            | self.source() << 9
            | self.source() << 18
            | self.seldom(2) << 27
            | self.seldom(3) << 29;
        let modifiers = self.seldom(3) << 8 | self.seldom(4) << 11 | self.seldom(1) << 15;
        match family {
            // SOP2, SOPK and SOP1, SOPC, SOPP.
            0 => [0x8000_0000 | self.bits(30), b, c],
            1 => [0xbe80_0000 | self.bits(24) & 0x1ff_ffff, b, c],
            2 => {
                let word = 0xf400_0000 | self.bits(8) << 18 | self.bits(13) | self.seldom(5) << 13;
                let offset = self.bits(21) | self.seldom(4) << 21 | self.field(7, 124) << 25;
                [word, offset, c]
            }
            // VOP2, with VOP1 and VOPC.
            3 => [a & 0x7fff_fe00 | self.source(), dpp, c],
            4 => [0x7c00_0000 | a & 0x3ff_fe00 | self.source(), dpp, c],
            5 => {
                let word = 0xd400_0000 | self.bits(10) << 16 | modifiers | self.bits(8);
                [word, sources, dpp]
            }
            6 => {
                let word = 0xcc00_0000 | self.bits(7) << 16 | modifiers | self.bits(8);
                [word ^ self.field(1, 1) << 14, sources ^ 0x1800_0000, dpp]
            }
            7 => {
                let word = 0xd800_0000 | self.bits(8) << 18 | self.seldom(1) << 17 | self.bits(16);
                [word, self.vectors(), c]
            }
            8 => {
                let word = 0xdc00_0000 | self.bits(9) << 16 | self.bits(15);
                [word, self.flat_operands(124), c]
            }
            9 => [a, b, c],
            // VOPD.
            _ => {
                let word = 0xc800_0000 | self.bits(26) & !0x1ff | self.source();
                [word, b & !0x1ff | self.source(), c]
            }
        }
    }
}

/// Whether the instruction is only valid in wave32: a lane mask is not a pair.
fn is_for_wave32(inst: &Inst) -> bool {
    let spec = inst.spec;
    let kinds = spec.dst.iter().chain(&spec.src);
    let operands = [inst.dst, inst.dst2].into_iter().chain(inst.src);
    kinds
        .zip(operands)
        .any(|(kind, operand)| *kind == Kind::MASK && operand.0 % 2 != 0)
}

/// Whether LLVM accepts an instruction that the guide does not specify or that the model does not support.
fn is_unspecified(text: &str, words: &[u32]) -> bool {
    let vop3 = matches!(words[0] >> 26, 0b110101 | 0b110100);
    let operands: Vec<&str> = text.split([' ', ',']).filter(|s| !s.is_empty()).collect();
    let mask = if text.contains("v_cndmask") {
        operands.last()
    } else {
        operands.get(1)
    };
    // Pixel shader parameters in LDS.
    text.contains("src_lds_direct")
        || text.contains("src_pops_exiting_wave_id")
        // gfx9: loads to LDS in other formats than GLOBAL and SCRATCH.
        || text.ends_with(" lds")
        // The lane mask or the destination is not a register.
        || vop3 && mask.is_some_and(|mask| mask.starts_with("src_"))
        // OP_SEL selects half of a 32-bit operand.
        || vop3 && text.contains(" op_sel:[")
        // The sign of a mask of classes.
        || text.contains("_class_f16 ") && (text.contains(", -") || text.contains(", |"))
        // The source is a constant, relative to M0.
        || text.starts_with("s_movrelsd_2_b32")
}

/// Whether it is a buffer instruction of gfx9 that the model supports: a load or store of bytes, shorts or dwords, by
/// offset only.
fn is_modelled_buffer(text: &str) -> bool {
    let loads = ["buffer_load_", "buffer_store_"];
    let other = ["format", " idxen", " tfe", " lds"];
    loads.iter().any(|name| text.starts_with(name)) && !other.iter().any(|name| text.contains(name))
}

/// LLVM's disassembler accepts more than its assembler generates, and sometimes prints words that differ from its input. So:
///
/// - If the decoder's text differs from LLVM's text, the decoder must return LLVM's text for the words that LLVM prints.
/// - If the decoder rejects words that LLVM prints unchanged, then LLVM has marked them as invalid, or LLVM's text does not
///   assemble to these words, or the model does not support the format.
fn random_words_decode_alike(mode: Mode) {
    const OTHER_FORMATS: [&str; 40] = [
        // gfx9
        "s_atomic_",
        "s_buffer_atomic_",
        "s_store_",
        "s_buffer_store_",
        "s_scratch_",
        "s_dcache_discard",
        "s_cbranch_i_fork",
        "s_cbranch_g_fork",
        "s_cbranch_join",
        "s_rfe_restore",
        "s_setvskip",
        "v_screen_partition",
        // gfx11
        "buffer_",
        "tbuffer_",
        "image_",
        "exp ",
        "lds_",
        "v_interp_",
        "s_atc_probe",
        // gfx12
        "export ",
        "ds_bvh_stack_",
        "ds_direct_load",
        "ds_param_load",
        "s_prefetch_",
        "s_buffer_prefetch_",
        "global_load_block",
        "global_store_block",
        "global_load_tr_",
        "global_atomic_ordered_",
        "scratch_load_block",
        "scratch_store_block",
        "v_cvt_f32_fp8",
        "v_cvt_f32_bf8",
        "v_cvt_pk_f32_",
        "v_cvt_pk_fp8_",
        "v_cvt_pk_bf8_",
        "v_cvt_sr_",
        "v_dot4_f32_",
        "v_wmma_",
        "v_swmmac_",
    ];
    // For some values or modifiers of these operations, the disassembler prints names that the assembler rejects.
    const OTHER_NAMES: [&str; 3] = ["s_version", "v_dot4_i32_i8", "v_dot8_i32_i4"];
    let mut random = Random(mode.lanes as u64);
    // Only the families of vector instructions depend on the wave size.
    let samples: Vec<Sample> = (0..100_000)
        .filter(|number| mode != GFX11_WAVE64 || (3..=6).contains(&(number % 11)))
        // gfx12 has most formats of gfx11.
        .filter(|number| mode != GFX12 || number % 2 == 0)
        .map(|number| random.sample_of(mode.arch, number))
        .collect();
    let count = samples.len();
    let (mut alike, mut different, mut rejected) = (0, vec![], vec![]);
    for (words, llvm) in samples.iter().zip(disassemble(mode, &samples)) {
        match (decode(mode.arch, words), llvm) {
            (Err(_), None) => {}
            (Ok(inst), None) if mode == GFX11_WAVE64 && is_for_wave32(&inst) => {}
            (Ok(inst), None) => {
                let text = inst.text(mode.lanes).to_string();
                let difference = format!("{words:08x?} llvm: none\n  model: {text}");
                different.push((text, difference));
            }
            (Ok(_), Some((text, _))) if OTHER_NAMES.iter().any(|name| text.starts_with(name)) => {}
            (Ok(_), Some(llvm)) => {
                alike += 1;
                let shown = &llvm.1;
                if let Some(found) = difference(mode, words, &llvm)
                    && (words.starts_with(shown) || difference(mode, shown, &llvm).is_some())
                {
                    different.push(found);
                }
            }
            (Err(_), Some((text, shown))) => {
                // Bits of gfx1250, which llvm-mc prints for gfx1201.
                let gfx1250 = [" nv", " scale_offset"]
                    .iter()
                    .any(|name| text.contains(name));
                let other = gfx1250
                    || !(mode.arch.is_gfx9() && is_modelled_buffer(&text))
                        && OTHER_FORMATS.iter().any(|name| text.starts_with(name));
                if words.starts_with(&shown) && !text.contains("/*") && !other {
                    rejected.push((text, shown));
                }
            }
        }
    }
    assert!(alike > count / 5, "only {alike} valid samples");
    report("random words that decode differently", count, different);

    let lines: Vec<String> = rejected.iter().map(|(text, _)| text.clone()).collect();
    let again = assemble(mode, &lines);
    let missing = rejected
        .into_iter()
        .zip(again)
        .filter(|((_, words), again)| again.as_ref().is_ok_and(|(_, again)| again == words))
        .filter(|((text, words), _)| !is_unspecified(text, words))
        .map(|((text, words), _)| (text.clone(), format!("{words:08x?} llvm: {text}")))
        .collect();
    report(
        "words that the decoder rejects and LLVM generates",
        count,
        missing,
    );
}

fn a_truncated_instruction_is_an_error() {
    for &arch in Architecture::ALL {
        let mut random = Random(3);
        for i in 0..200_000 {
            let words = random.sample_of(arch, i);
            let Ok(inst) = decode(arch, &words) else {
                continue;
            };
            let len = usize::from(inst.len) / 4;
            assert_eq!(decode(arch, &words[..len]), Ok(inst), "{words:08x?}");
            for short in 0..len {
                let result = decode(arch, &words[..short]);
                assert_eq!(result, Err(DecodeError::Short), "{words:08x?}");
            }
        }
    }
}

fn main() {
    let modes = [
        ("in_wave32", GFX11_WAVE32),
        ("in_wave64", GFX11_WAVE64),
        ("on_gfx1201", GFX12),
        ("on_gfx90a", GFX90A),
        ("on_gfx942", GFX942),
    ];
    let compare = |name: &str, test: fn(Mode)| {
        modes.map(|(suffix, mode)| Test::new(&format!("{name}_{suffix}"), move || test(mode)))
    };
    let mut tests = vec![];
    tests.extend(compare(
        "all_forms_decode_as_in_llvm",
        forms_decode_as_written,
    ));
    tests.extend(compare(
        "random_words_decode_alike",
        random_words_decode_alike,
    ));
    let truncated = "a_truncated_instruction_is_an_error";
    let others = vec![Test::new(truncated, a_truncated_instruction_is_an_error)];
    debian::main("llvm_mc", tests, others);
}
