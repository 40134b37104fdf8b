//! [`Inst`] in LLVM's assembly. Fault messages include it.

use std::fmt::{self, Display, Formatter, Write};

use super::architecture::Architecture;
use super::encoding::Encoding;
use super::inst::{Dpp, Dual, Inst, Part, Sdwa, Unused};
use super::operand::Operand;
use super::tables::{Kind, Op, Spec};

impl Display for Inst {
    /// The text for a wave32, or a wave64 of gfx9. Use [`Inst::text`] for a wave64, in which lane masks are register pairs.
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write(f, self, self.arch.wave_size())
    }
}

impl Inst {
    /// The instruction's text for a wave of `lanes` lanes.
    pub fn text(&self, lanes: usize) -> impl Display {
        struct Text<'a>(&'a Inst, usize);
        impl Display for Text<'_> {
            fn fmt(&self, f: &mut Formatter) -> fmt::Result {
                write(f, self.0, self.1)
            }
        }
        Text(self, lanes)
    }
}

fn write(f: &mut Formatter, inst: &Inst, lanes: usize) -> fmt::Result {
    let spec = inst.spec;
    write_mnemonic(f, inst.enc, spec.name)?;
    f.write_str(suffix(inst, spec))?;
    let mut list = List {
        f,
        inst,
        lanes,
        first: true,
    };
    match inst.enc {
        Encoding::Flat | Encoding::Global | Encoding::Scratch => list.flat(spec)?,
        Encoding::Smem if spec.src[0] != Kind::NONE => list.smem(spec)?,
        Encoding::Mubuf => list.mubuf(spec)?,
        Encoding::Sopk => list.sopk(spec)?,
        Encoding::Vopd => {
            list.half(spec, inst.dst, &inst.src)?;
            if let Some(Dual { op, dst, src }) = &inst.dual {
                let spec = inst.arch.row(*op).ok_or(fmt::Error)?;
                list.f.write_str(" :: ")?;
                write_mnemonic(list.f, inst.enc, spec.name)?;
                list.first = true;
                list.half(spec, *dst, src)?;
            }
        }
        _ => list.operands(spec)?,
    }
    let f = list.f;
    match inst.enc {
        Encoding::Vop3 | Encoding::Vop3Sd => vop3_modifiers(f, inst, spec)?,
        Encoding::Vop3p => vop3p_modifiers(f, inst, spec)?,
        Encoding::Mai => mai_modifiers(f, inst, spec)?,
        Encoding::Mubuf => {
            f.write_str(if inst.flag { " offen" } else { "" })?;
            if inst.imm != 0 {
                write!(f, " offset:{}", inst.imm)?;
            }
        }
        Encoding::Ds => ds_modifiers(f, inst, spec)?,
        Encoding::Flat | Encoding::Global | Encoding::Scratch if inst.imm != 0 => {
            write!(f, " offset:{}", inst.imm)?;
        }
        _ => {}
    }
    let names = match inst.arch {
        Architecture::Gfx11 | Architecture::Gfx12 => [" glc", " slc", " dlc"],
        Architecture::Gfx90a => [" glc", " slc", " scc"],
        Architecture::Gfx942 if inst.enc == Encoding::Smem => [" glc", "", ""],
        Architecture::Gfx942 => [" sc0", " nt", " sc1"],
    };
    if inst.arch == Architecture::Gfx12 {
        return cache_policy(f, inst).and_then(|()| dpp_control(f, inst));
    }
    for (set, name) in [inst.glc, inst.slc, inst.dlc].into_iter().zip(names) {
        if set {
            f.write_str(name)?;
        }
    }
    if let Some(sdwa) = &inst.sdwa {
        sdwa_control(f, inst, sdwa)?;
    }
    dpp_control(f, inst)
}

/// TH and SCOPE of gfx12.
fn cache_policy(f: &mut Formatter, inst: &Inst) -> fmt::Result {
    let (scope, hint) = (inst.cache & 3, inst.cache >> 2);
    let system = scope == 3;
    let name = match hint {
        0 => "",
        _ if inst.spec.is_atomic() => match hint {
            1 => "ATOMIC_RETURN",
            2 => "ATOMIC_NT",
            3 => "ATOMIC_NT_RETURN",
            4 | 5 if scope >= 2 => "ATOMIC_CASCADE_RT",
            6 | 7 if scope >= 2 => "ATOMIC_CASCADE_NT",
            _ => return write!(f, " th:TH_ATOMIC_{hint:#x}").and_then(|()| write_scope(f, scope)),
        },
        1 => "NT",
        2 => "HT",
        3 if system => "BYPASS",
        3 if inst.spec.dst[0] == Kind::NONE => "WB",
        3 => "LU",
        4 => "NT_RT",
        5 => "RT_NT",
        6 => "NT_HT",
        _ if inst.spec.dst[0] == Kind::NONE => "NT_WB",
        _ => return write!(f, " th:0x7").and_then(|()| write_scope(f, scope)),
    };
    if !name.is_empty() {
        f.write_str(" th:TH_")?;
        if !inst.spec.is_atomic() {
            let store = inst.spec.dst[0] == Kind::NONE;
            f.write_str(if store { "STORE_" } else { "LOAD_" })?;
        }
        f.write_str(name)?;
    }
    write_scope(f, scope)
}

fn write_scope(f: &mut Formatter, scope: u8) -> fmt::Result {
    f.write_str(
        [
            "",
            " scope:SCOPE_SE",
            " scope:SCOPE_DEV",
            " scope:SCOPE_SYS",
        ][usize::from(scope)],
    )
}

/// In VOPD, `v_dual_` replaces `v_`.
fn write_mnemonic(f: &mut Formatter, enc: Encoding, name: &str) -> fmt::Result {
    let (prefix, rest) = match name.strip_prefix("V_") {
        Some(rest) if enc == Encoding::Vopd => ("v_dual_", rest),
        _ => ("", name),
    };
    f.write_str(prefix)?;
    rest.chars()
        .try_for_each(|c| f.write_char(c.to_ascii_lowercase()))
}

/// The encoding suffix of the mnemonic.
fn suffix(inst: &Inst, spec: &Spec) -> &'static str {
    let dpp = inst.dpp != Dpp::None;
    let has_e64 = spec.has_e64();
    if inst.sdwa.is_some() {
        return "_sdwa";
    }
    match inst.enc {
        Encoding::Vopc if dpp => "",
        Encoding::Vop1 | Encoding::Vop2 if dpp => "_dpp",
        Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc if has_e64 => "_e32",
        Encoding::Vop3 | Encoding::Vop3Sd | Encoding::Vop3p if dpp => "_e64_dpp",
        Encoding::Vop3 | Encoding::Vop3Sd => match spec.format {
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc if has_e64 => "_e64",
            _ => "",
        },
        _ => "",
    }
}

/// Writes operands with commas between them.
struct List<'a, 'f> {
    f: &'a mut Formatter<'f>,
    inst: &'a Inst,
    lanes: usize,
    first: bool,
}

impl List<'_, '_> {
    fn comma(&mut self) -> fmt::Result {
        self.f.write_str(if self.first { " " } else { ", " })?;
        self.first = false;
        Ok(())
    }

    fn operand(&mut self, kind: Kind, operand: Operand) -> fmt::Result {
        self.comma()?;
        write_operand(self.f, self.inst, kind, operand, self.lanes)
    }

    fn immediate(&mut self, kind: Kind) -> fmt::Result {
        let imm = self.inst.imm as u16;
        if kind == Kind::DEC && imm == 0 {
            return Ok(());
        }
        self.comma()?;
        write_immediate(self.f, self.inst.arch, kind, imm)
    }

    fn operands(&mut self, spec: &Spec) -> fmt::Result {
        let inst = self.inst;
        for (i, (&kind, operand)) in spec.dst.iter().zip([inst.dst, inst.dst2]).enumerate() {
            if !matches!(kind, Kind::NONE | Kind::EXEC) {
                self.comma()?;
                self.register(kind, operand, i == 0 && inst.opsel & 8 != 0)?;
            }
        }
        for (i, &kind) in spec.src.iter().enumerate() {
            if kind.is_immediate() {
                self.immediate(kind)?;
            } else if kind != Kind::NONE {
                self.comma()?;
                self.source(i, kind)?;
            }
        }
        Ok(())
    }

    /// A register, and its half if the operand is true16.
    fn register(&mut self, kind: Kind, operand: Operand, high: bool) -> fmt::Result {
        write_operand(self.f, self.inst, kind, operand, self.lanes)?;
        let true16 = kind.is_true16() && !self.inst.arch.is_gfx9();
        if true16 && operand.as_vgpr().is_some() {
            self.f.write_str(if high { ".h" } else { ".l" })?;
        }
        Ok(())
    }

    /// A source with its NEG and ABS.
    fn source(&mut self, i: usize, kind: Kind) -> fmt::Result {
        let inst = self.inst;
        let packed = inst.enc == Encoding::Vop3p && kind != Kind::MIX;
        let has = |bits: u8| !packed && bits >> i & 1 != 0;
        let (neg, abs) = (has(inst.neg), has(inst.abs));
        if inst.sdwa.is_some_and(|sdwa| i < 2 && sdwa.sext[i]) {
            self.f.write_str("sext(")?;
            self.register(kind, inst.src[i], false)?;
            return self.f.write_str(")");
        }
        // `-1` would be another constant.
        let number = matches!(inst.src[i].0, 128..=208 | 240..=248 | 255);
        let call = neg && !abs && number;
        self.f.write_str(match (call, neg) {
            (true, _) => "neg(",
            (_, true) => "-",
            _ => "",
        })?;
        self.f.write_str(if abs { "|" } else { "" })?;
        self.register(kind, inst.src[i], inst.opsel >> i & 1 != 0)?;
        self.f.write_str(if abs { "|" } else { "" })?;
        self.f.write_str(if call { ")" } else { "" })
    }

    /// One half of VOPD, without the implicit VCC.
    fn half(&mut self, spec: &Spec, dst: Operand, src: &[Operand; 3]) -> fmt::Result {
        self.operand(spec.dst[0], dst)?;
        for (&kind, &operand) in spec.src.iter().zip(src) {
            if !matches!(kind, Kind::NONE | Kind::MASK) {
                self.operand(kind, operand)?;
            }
        }
        Ok(())
    }

    /// In `s_setreg`, the SDST field is a source and the second operand.
    fn sopk(&mut self, spec: &Spec) -> fmt::Result {
        if spec.src[1] != Kind::HWREG {
            return self.operands(spec);
        }
        self.immediate(Kind::HWREG)?;
        if spec.src[0] == Kind::K32 {
            self.comma()?;
            return write_small(self.f, self.inst.literal);
        }
        self.operand(spec.src[0], self.inst.src[0])
    }

    fn smem(&mut self, spec: &Spec) -> fmt::Result {
        let inst = self.inst;
        self.operand(spec.dst[0], inst.dst)?;
        self.operand(spec.src[0], inst.src[0])?;
        let (sign, offset) = (if inst.imm < 0 { "-" } else { "" }, inst.imm.unsigned_abs());
        let gfx12 = inst.arch == Architecture::Gfx12;
        let only_offset = offset != 0 || gfx12 || inst.arch.is_gfx9();
        if inst.src[1] == Operand::NULL && only_offset {
            self.comma()?;
            return write!(self.f, "{sign}{offset:#x}");
        }
        self.operand(spec.src[1], inst.src[1])?;
        if offset != 0 || gfx12 {
            write!(self.f, " offset:{sign}{offset:#x}")?;
        }
        Ok(())
    }

    /// The assembler writes `off` for a missing address.
    fn mubuf(&mut self, spec: &Spec) -> fmt::Result {
        let inst = self.inst;
        let [addr, data, soffset] = inst.src;
        if inst.dst != Operand::NONE {
            self.operand(spec.dst[0], inst.dst)?;
        } else {
            self.operand(spec.src[1], data)?;
        }
        if addr != Operand::NONE {
            self.operand(Kind::V32, addr)?;
        } else {
            self.comma()?;
            self.f.write_str("off")?;
        }
        self.operand(Kind::B128, inst.dst2)?;
        self.operand(Kind::B32, soffset)
    }

    /// The assembler writes `off` for a missing part of the address.
    fn flat(&mut self, spec: &Spec) -> fmt::Result {
        let inst = self.inst;
        let [addr, data, saddr] = inst.src;
        if inst.dst != Operand::NONE {
            self.operand(spec.dst[0], inst.dst)?;
        }
        if addr != Operand::NONE {
            let wide = spec.src[0] == Kind::B64 && saddr == Operand::NONE;
            self.operand(if wide { Kind::V64 } else { Kind::V32 }, addr)?;
        } else if inst.enc == Encoding::Scratch {
            self.comma()?;
            self.f.write_str("off")?;
        }
        if data != Operand::NONE {
            self.operand(spec.src[1], data)?;
        }
        if saddr != Operand::NONE {
            let global = inst.enc == Encoding::Global;
            self.operand(if global { Kind::R64 } else { Kind::R32 }, saddr)?;
        } else if inst.enc != Encoding::Flat {
            self.comma()?;
            self.f.write_str("off")?;
        }
        Ok(())
    }
}

fn write_operand(
    f: &mut Formatter,
    inst: &Inst,
    kind: Kind,
    operand: Operand,
    lanes: usize,
) -> fmt::Result {
    let count = kind.bits(lanes).div_ceil(32);
    let code = operand.0;
    match code {
        102..=105 if inst.arch.is_gfx9() => write_gfx9_special(f, usize::from(code), count),
        0..=127 => write_scalar(f, usize::from(code), count),
        128..=192 => write!(f, "{}", code - 128),
        193..=208 => write!(f, "{}", 192 - i32::from(code)),
        235 => f.write_str("src_shared_base"),
        236 => f.write_str("src_shared_limit"),
        237 => f.write_str("src_private_base"),
        238 => f.write_str("src_private_limit"),
        240 => f.write_str("0.5"),
        241 => f.write_str("-0.5"),
        242 => f.write_str("1.0"),
        243 => f.write_str("-1.0"),
        244 => f.write_str("2.0"),
        245 => f.write_str("-2.0"),
        246 => f.write_str("4.0"),
        247 => f.write_str("-4.0"),
        248 if kind.bits(lanes) == 64 && !matches!(kind, Kind::PKF32 | Kind::PKB32) => {
            f.write_str("0.15915494309189532")
        }
        248 => f.write_str("0.15915494"),
        251 => f.write_str("src_vccz"),
        252 => f.write_str("src_execz"),
        253 => f.write_str("src_scc"),
        // In SOP1, LLVM has 32-bit operands for f16.
        255 if inst.enc == Encoding::ScalarFloat && inst.spec.format == Encoding::Sop1 => {
            write_literal(f, Kind::F32, inst.literal)
        }
        // LLVM does not use inline constants in this instruction, so `lit()` is not necessary.
        255 if inst.op == Op::V_PK_FMAC_F16 => write!(f, "{:#x}", inst.literal),
        255 => write_literal(f, kind, inst.literal),
        512..768 => write_range(f, "a", usize::from(code) - 512, count),
        256.. if operand != Operand::NONE => write_range(f, "v", usize::from(code) - 256, count),
        _ => write!(f, "<operand {code}>"),
    }
}

fn write_range(f: &mut Formatter, file: &str, first: usize, count: usize) -> fmt::Result {
    if count <= 1 {
        write!(f, "{file}{first}")
    } else {
        write!(f, "{file}[{first}:{}]", first + count - 1)
    }
}

/// FLAT_SCRATCH and XNACK_MASK, which follow the SGPRs in gfx9.
fn write_gfx9_special(f: &mut Formatter, code: usize, count: usize) -> fmt::Result {
    f.write_str(if code < 104 {
        "flat_scratch"
    } else {
        "xnack_mask"
    })?;
    f.write_str(match (count, code % 2) {
        (1, 0) => "_lo",
        (1, _) => "_hi",
        _ => "",
    })
}

fn write_scalar(f: &mut Formatter, code: usize, count: usize) -> fmt::Result {
    let end = code + count;
    match code {
        124 => f.write_str("null"),
        106 if count == 2 => f.write_str("vcc"),
        126 if count == 2 => f.write_str("exec"),
        0..=105 if end <= 106 => write_range(f, "s", code, count),
        108..=123 if end <= 124 => write_range(f, "ttmp", code - 108, count),
        106 => f.write_str("vcc_lo"),
        107 => f.write_str("vcc_hi"),
        125 => f.write_str("m0"),
        126 => f.write_str("exec_lo"),
        127 => f.write_str("exec_hi"),
        // A range that continues in VCC.
        _ => {
            for n in code..end {
                f.write_char(if n == code { '[' } else { ',' })?;
                write_scalar(f, n, 1)?;
            }
            f.write_char(']')
        }
    }
}

/// A literal. `lit()` distinguishes it from an equal inline constant.
fn write_literal(f: &mut Formatter, kind: Kind, value: u32) -> fmt::Result {
    use Kind::*;
    let small = |v: i32| (-16..=64).contains(&v);
    // The low half as a constant.
    let low = value & 0xffff;
    let small_low = small(i32::from(value as i16));
    let marked = match kind {
        K32 | K16 => false,
        B16 | I16 | U16 | PKI16 | PKU16 => small(value as i32),
        F16 | MIX => small_low || is_f16_constant(low),
        BF16 => small_low || is_bf16_constant(low),
        PKF16 => small(value as i32) || is_f16_constant(value),
        PKBF16 => small(value as i32) || is_bf16_constant(value),
        F64 => value == 0 || is_f64_constant(value),
        B64 | I64 | U64 => value <= 64,
        _ => small(value as i32) || is_f32_constant(value),
    };
    let value = match kind {
        B16 | I16 | U16 | F16 | MIX if !marked => low,
        _ => value,
    };
    if marked {
        write!(f, "lit({value:#x})")
    } else {
        write!(f, "{value:#x}")
    }
}

/// Whether these are the bits of 0.5, 1, 2, 4, of one of these negated, or of 1/(2 pi).
fn is_f32_constant(value: u32) -> bool {
    matches!(
        value & 0x7fff_ffff,
        0x3f00_0000 | 0x3f80_0000 | 0x4000_0000 | 0x4080_0000
    ) || value == 0x3e22_f983
}

fn is_f16_constant(value: u32) -> bool {
    matches!(value & !0x8000, 0x3800 | 0x3c00 | 0x4000 | 0x4400) || value == 0x3118
}

fn is_bf16_constant(value: u32) -> bool {
    matches!(value & !0x8000, 0x3f00 | 0x3f80 | 0x4000 | 0x4080) || value == 0x3e22
}

/// `high`: the high half. 1/(2 pi) is not one of these, because its low half is not zero.
fn is_f64_constant(high: u32) -> bool {
    matches!(
        high & 0x7fff_ffff,
        0x3fe0_0000 | 0x3ff0_0000 | 0x4000_0000 | 0x4010_0000
    )
}

/// Decimal in the range of unsigned inline constants, hexadecimal otherwise.
fn write_small(f: &mut Formatter, value: u32) -> fmt::Result {
    if value <= 64 {
        write!(f, "{value}")
    } else {
        write!(f, "{value:#x}")
    }
}

fn write_immediate(f: &mut Formatter, arch: Architecture, kind: Kind, imm: u16) -> fmt::Result {
    match kind {
        Kind::MSG if arch.is_gfx9() => gfx9_message(f, imm),
        Kind::GPRIDX => gpr_index_mode(f, imm),
        Kind::HEX => write!(f, "{imm:#x}"),
        Kind::DEC | Kind::LABEL => write!(f, "{imm}"),
        Kind::HWREG => hwreg(f, arch, imm),
        Kind::MSG => message(f, arch, imm),
        Kind::WAITCNT => waitcnt(f, arch, imm),
        Kind::DELAY => delay(f, imm),
        Kind::DEPCTR => depctr(f, imm),
        Kind::EVENT if arch == Architecture::Gfx12 => match imm {
            0 | 2 => write!(f, "{{ export_ready: {} }}", imm / 2),
            _ => write!(f, "{imm:#x}"),
        },
        Kind::EVENT if imm < 2 => write!(f, "{{ dont_wait_export_ready: {imm} }}"),
        Kind::EVENT => write!(f, "{imm:#x}"),
        _ => write_small(f, imm.into()),
    }
}

/// The name of a hardware register, or nothing.
fn hwreg_name(arch: Architecture, id: u16) -> &'static str {
    use Architecture::{Gfx11, Gfx12, Gfx942};
    match (arch, id) {
        (Gfx12, 1) => "WAVE_MODE",
        (Gfx12, 2) => "WAVE_STATUS",
        (Gfx12, 4) => "WAVE_STATE_PRIV",
        (Gfx12, 5) => "WAVE_GPR_ALLOC",
        (Gfx12, 6) => "WAVE_LDS_ALLOC",
        (Gfx12, 7) => "IB_STS",
        (Gfx12, 10) => "PERF_SNAPSHOT_DATA",
        (Gfx12, 11) => "PERF_SNAPSHOT_PC_LO",
        (Gfx12, 12) => "PERF_SNAPSHOT_PC_HI",
        (Gfx12, 15) => "PERF_SNAPSHOT_DATA1",
        (Gfx12, 16) => "PERF_SNAPSHOT_DATA2",
        (Gfx12, 17) => "WAVE_EXCP_FLAG_PRIV",
        (Gfx12, 18) => "WAVE_EXCP_FLAG_USER",
        (Gfx12, 19) => "WAVE_TRAP_CTRL",
        (Gfx12, 20) => "WAVE_SCRATCH_BASE_LO",
        (Gfx12, 21) => "WAVE_SCRATCH_BASE_HI",
        (Gfx12, 23) => "WAVE_HW_ID1",
        (Gfx12, 24) => "WAVE_HW_ID2",
        (Gfx12, 26) => "WAVE_SCHED_MODE",
        (Gfx12, 29) => "SHADER_CYCLES_LO",
        (Gfx12, 30) => "SHADER_CYCLES_HI",
        (Gfx12, 31) => "WAVE_DVGPR_ALLOC_LO",
        (Gfx12, 32) => "WAVE_DVGPR_ALLOC_HI",
        (Gfx12, _) => "",
        (_, 1) => "MODE",
        (_, 2) => "STATUS",
        (_, 3) => "TRAPSTS",
        (_, 5) => "GPR_ALLOC",
        (_, 6) => "LDS_ALLOC",
        (_, 7) => "IB_STS",
        (_, 15) => "SH_MEM_BASES",
        (Gfx11, 18) => "PERF_SNAPSHOT_PC_LO",
        (Gfx11, 19) => "PERF_SNAPSHOT_PC_HI",
        (Gfx11, 20) => "FLAT_SCR_LO",
        (Gfx11, 21) => "FLAT_SCR_HI",
        (Gfx11, 23) => "HW_ID1",
        (Gfx11, 24) => "HW_ID2",
        (Gfx11, 27) => "PERF_SNAPSHOT_DATA",
        (Gfx11, 29) => "SHADER_CYCLES",
        (Gfx11, _) => "",
        (_, 4) => "HW_ID",
        (_, 16) => "TBA_LO",
        (_, 17) => "TBA_HI",
        (_, 18) => "TMA_LO",
        (_, 19) => "TMA_HI",
        (Gfx942, 20) => "XCC_ID",
        (Gfx942, 21) => "SQ_PERF_SNAPSHOT_DATA",
        (Gfx942, 22) => "SQ_PERF_SNAPSHOT_DATA1",
        (Gfx942, 23) => "SQ_PERF_SNAPSHOT_PC_LO",
        (Gfx942, 24) => "SQ_PERF_SNAPSHOT_PC_HI",
        _ => "",
    }
}

fn hwreg(f: &mut Formatter, arch: Architecture, imm: u16) -> fmt::Result {
    let (id, offset, size) = (imm & 63, imm >> 6 & 31, (imm >> 11) + 1);
    let name = hwreg_name(arch, id);
    if name.is_empty() {
        write!(f, "hwreg({id}")?;
    } else {
        write!(f, "hwreg(HW_REG_{name}")?;
    }
    if (offset, size) != (0, 32) {
        write!(f, ", {offset}, {size}")?;
    }
    f.write_char(')')
}

fn message(f: &mut Formatter, arch: Architecture, imm: u16) -> fmt::Result {
    let name = match imm & 0xff {
        5 | 6 if arch == Architecture::Gfx12 => return write!(f, "sendmsg({imm}, 0, 0)"),
        1 => "INTERRUPT",
        2 => "HS_TESSFACTOR",
        3 => "DEALLOC_VGPRS",
        5 => "STALL_WAVE_GEN",
        6 => "HALT_WAVES",
        9 => "GS_ALLOC_REQ",
        0x80 => "RTN_GET_DOORBELL",
        0x81 => "RTN_GET_DDID",
        0x82 => "RTN_GET_TMA",
        0x83 => "RTN_GET_REALTIME",
        0x84 => "RTN_SAVE_WAVE",
        0x85 => "RTN_GET_TBA",
        0x86 => "RTN_GET_TBA_TO_PC",
        0x87 if arch == Architecture::Gfx12 => "RTN_GET_SE_AID_ID",
        _ if imm < 0x100 => return write!(f, "sendmsg({imm}, 0, 0)"),
        _ => return write!(f, "{imm}"),
    };
    write!(f, "sendmsg(MSG_{name})")
}

/// The messages of a compute shader have no operation. Messages of graphics are written as numbers.
fn gfx9_message(f: &mut Formatter, imm: u16) -> fmt::Result {
    let name = match imm {
        1 => "INTERRUPT",
        4 => "SAVEWAVE",
        5 => "STALL_WAVE_GEN",
        6 => "HALT_WAVES",
        7 => "ORDERED_PS_DONE",
        8 => "EARLY_PRIM_DEALLOC",
        9 => "GS_ALLOC_REQ",
        10 => "GET_DOORBELL",
        _ => "",
    };
    if !name.is_empty() {
        return write!(f, "sendmsg(MSG_{name})");
    }
    let (message, operation, stream) = (imm & 15, imm >> 4 & 7, imm >> 8 & 3);
    if imm >> 10 != 0 || imm >> 7 & 1 != 0 {
        return write!(f, "{imm}");
    }
    write!(f, "sendmsg({message}, {operation}, {stream})")
}

fn gpr_index_mode(f: &mut Formatter, imm: u16) -> fmt::Result {
    f.write_str("gpr_idx(")?;
    let mut comma = "";
    for (i, name) in ["SRC0", "SRC1", "SRC2", "DST"].into_iter().enumerate() {
        if imm >> i & 1 != 0 {
            write!(f, "{comma}{name}")?;
            comma = ",";
        }
    }
    f.write_char(')')
}

/// The counters of `s_waitcnt`.
fn waitcnt(f: &mut Formatter, arch: Architecture, imm: u16) -> fmt::Result {
    let [vm, exp, lgkm] = if arch.is_gfx9() {
        [
            (imm & 15 | imm >> 14 << 4, 63),
            (imm >> 4 & 7, 7),
            (imm >> 8 & 15, 15),
        ]
    } else {
        [(imm >> 10, 63), (imm & 7, 7), (imm >> 4 & 63, 63)]
    };
    counters(f, "", &[("vmcnt", vm), ("expcnt", exp), ("lgkmcnt", lgkm)])
}

fn depctr(f: &mut Formatter, imm: u16) -> fmt::Result {
    if imm & 0x60 != 0 {
        return write!(f, "{imm:#x}");
    }
    let fields = [
        ("hold_cnt", (imm >> 7 & 1, 1)),
        ("sa_sdst", (imm & 1, 1)),
        ("va_vdst", (imm >> 12, 15)),
        ("va_sdst", (imm >> 9 & 7, 7)),
        ("va_ssrc", (imm >> 8 & 1, 1)),
        ("va_vcc", (imm >> 1 & 1, 1)),
        ("vm_vsrc", (imm >> 2 & 7, 7)),
    ];
    counters(f, "depctr_", &fields)
}

/// Counters with their values and maxima. Counters at their maximum are omitted, unless all are at their maximum.
fn counters(f: &mut Formatter, prefix: &str, fields: &[(&str, (u16, u16))]) -> fmt::Result {
    let all_at_maximum = fields.iter().all(|(_, (value, max))| value == max);
    let mut space = "";
    for (name, (value, max)) in fields {
        if all_at_maximum || value != max {
            write!(f, "{space}{prefix}{name}({value})")?;
            space = " ";
        }
    }
    Ok(())
}

fn delay(f: &mut Formatter, imm: u16) -> fmt::Result {
    const ID: &str = "NO_DEP VALU_DEP_1 VALU_DEP_2 VALU_DEP_3 VALU_DEP_4 TRANS32_DEP_1 TRANS32_DEP_2 \
                      TRANS32_DEP_3 FMA_ACCUM_CYCLE_1 SALU_CYCLE_1 SALU_CYCLE_2 SALU_CYCLE_3";
    const SKIP: &str = "SAME NEXT SKIP_1 SKIP_2 SKIP_3 SKIP_4";
    let mut bar = "";
    for (name, value, names) in [
        ("instid0", imm & 15, ID),
        ("instskip", imm >> 4 & 7, SKIP),
        ("instid1", imm >> 7 & 15, ID),
    ] {
        if value != 0 {
            let invalid = format!("/* invalid {} value */", name.trim_end_matches(['0', '1']));
            let text = names.split(' ').nth(value.into()).unwrap_or(&invalid);
            write!(f, "{bar}{name}({text})")?;
            bar = " | ";
        }
    }
    if bar.is_empty() {
        f.write_char('0')
    } else {
        Ok(())
    }
}

fn bits(f: &mut Formatter, name: &str, value: u8, count: usize) -> fmt::Result {
    write!(f, " {name}:[")?;
    for i in 0..count {
        write!(f, "{}{}", if i == 0 { "" } else { "," }, value >> i & 1)?;
    }
    f.write_char(']')
}

fn vop3_modifiers(f: &mut Formatter, inst: &Inst, spec: &Spec) -> fmt::Result {
    let sources = spec.present_sources().count_ones() as usize;
    // The names of VGPRs include the half. The names of other sources do not.
    let needs_op_sel =
        (0..sources).any(|i| inst.opsel >> i & 1 != 0 && inst.src[i].as_vgpr().is_none());
    if inst.arch.is_gfx9() {
        if inst.opsel != 0 {
            // Bits 2 and 3 of the stochastic conversions select the byte of the destination.
            let sources = if matches!(inst.op, Op::V_CVT_SR_FP8_F32 | Op::V_CVT_SR_BF8_F32) {
                3
            } else {
                sources
            };
            let destination = (inst.opsel >> 3 & 1) << sources;
            bits(f, "op_sel", inst.opsel & 7 | destination, sources + 1)?;
        }
    } else if inst.spec.is_permlane16() {
        if inst.opsel != 0 {
            bits(f, "op_sel", inst.opsel, 2)?;
        }
    } else if needs_op_sel {
        let destination = (inst.opsel >> 3 & 1) << sources;
        bits(f, "op_sel", inst.opsel & 7 | destination, sources + 1)?;
    }
    clamp(f, inst)?;
    omod(f, inst)
}

fn omod(f: &mut Formatter, inst: &Inst) -> fmt::Result {
    f.write_str(match inst.omod {
        0 => "",
        1 => " mul:2",
        2 => " mul:4",
        _ => " div:2",
    })
}

fn mai_modifiers(f: &mut Formatter, inst: &Inst, spec: &Spec) -> fmt::Result {
    let [cbsz, abid, blgp] = inst.broadcast;
    // BLGP of f64 is NEG.
    let neg = inst.arch == Architecture::Gfx942 && spec.name.starts_with("V_MFMA_F64");
    for (name, value) in [("cbsz", cbsz), ("abid", abid), ("blgp", blgp)] {
        if value == 0 {
            continue;
        }
        if neg && name == "blgp" {
            bits(f, "neg", value, 3)?;
        } else {
            write!(f, " {name}:{value}")?;
        }
    }
    Ok(())
}

fn sdwa_control(f: &mut Formatter, inst: &Inst, sdwa: &Sdwa) -> fmt::Result {
    let part = |f: &mut Formatter, name: &str, part: Part| match part {
        Part::Byte(n) => write!(f, " {name}:BYTE_{n}"),
        Part::Word(n) => write!(f, " {name}:WORD_{n}"),
        Part::Dword => write!(f, " {name}:DWORD"),
    };
    clamp(f, inst)?;
    omod(f, inst)?;
    if inst.enc != Encoding::Vopc && !inst.spec.converts_8_bit_floats() {
        part(f, "dst_sel", sdwa.dst)?;
        f.write_str(match sdwa.unused {
            Unused::Pad => " dst_unused:UNUSED_PAD",
            Unused::SignExtend => " dst_unused:UNUSED_SEXT",
            Unused::Preserve => " dst_unused:UNUSED_PRESERVE",
        })?;
    }
    part(f, "src0_sel", sdwa.src[0])?;
    if !matches!(inst.spec.src[1], Kind::NONE | Kind::MASK) {
        part(f, "src1_sel", sdwa.src[1])?;
    }
    Ok(())
}

fn clamp(f: &mut Formatter, inst: &Inst) -> fmt::Result {
    f.write_str(if inst.clamp { " clamp" } else { "" })
}

fn vop3p_modifiers(f: &mut Formatter, inst: &Inst, spec: &Spec) -> fmt::Result {
    let count = spec.present_sources().count_ones() as usize;
    let all = spec.present_sources();
    let mix = spec.src[0] == Kind::MIX;
    if inst.opsel != 0 {
        bits(f, "op_sel", inst.opsel, count)?;
    }
    let default = if mix { 0 } else { all };
    if spec.has_op_sel() && inst.opsel_hi & all != default {
        bits(f, "op_sel_hi", inst.opsel_hi, count)?;
    }
    if !mix {
        for (name, value) in [("neg_lo", inst.neg), ("neg_hi", inst.abs)] {
            if value != 0 {
                bits(f, name, value, count)?;
            }
        }
    }
    clamp(f, inst)
}

fn ds_modifiers(f: &mut Formatter, inst: &Inst, spec: &Spec) -> fmt::Result {
    if spec.has_two_offsets() {
        for (name, value) in [("offset0", inst.imm), ("offset1", inst.imm2.into())] {
            if value != 0 {
                write!(f, " {name}:{value}")?;
            }
        }
    } else if inst.imm != 0 {
        f.write_str(" offset:")?;
        if inst.op == Op::DS_SWIZZLE_B32 {
            swizzle(f, inst.imm as u16)?;
        } else {
            write!(f, "{}", inst.imm)?;
        }
    }
    f.write_str(if inst.flag { " gds" } else { "" })
}

/// The pattern of `ds_swizzle`, by name if it has one.
fn swizzle(f: &mut Formatter, imm: u16) -> fmt::Result {
    let low = imm & 31;
    match imm >> 13 {
        0b111 => return write!(f, "swizzle(FFT,{low})"),
        0b110 => return write!(f, "swizzle(ROTATE,{},{})", imm >> 10 & 1, imm >> 5 & 31),
        _ => {}
    }
    if imm >> 8 == 0x80 {
        let lane = |i: u16| imm >> (2 * i) & 3;
        let (a, b, c, d) = (lane(0), lane(1), lane(2), lane(3));
        return write!(f, "swizzle(QUAD_PERM,{a},{b},{c},{d})");
    }
    if imm >= 0x8000 {
        return write!(f, "{imm}");
    }
    let (and, or, xor) = (low, imm >> 5 & 31, imm >> 10 & 31);
    if (and, or) == (31, 0) && xor.count_ones() == 1 {
        return write!(f, "swizzle(SWAP,{xor})");
    }
    if (and, or) == (31, 0) && xor != 0 && (xor + 1).is_power_of_two() {
        return write!(f, "swizzle(REVERSE,{})", xor + 1);
    }
    let group = 32 - and;
    if xor == 0 && group > 1 && group.is_power_of_two() && or < group {
        return write!(f, "swizzle(BROADCAST,{group},{or})");
    }
    f.write_str("swizzle(BITMASK_PERM,\"")?;
    for i in (0..5).rev() {
        let of = |mask: u16| mask >> i & 1;
        // The new value of a bit of the lane number, for 0 and for 1.
        let result = |lane: u16| (lane & of(and) | of(or)) ^ of(xor);
        f.write_char(match (result(0), result(1)) {
            (0, 0) => '0',
            (1, 1) => '1',
            (0, _) => 'p',
            _ => 'i',
        })?;
    }
    f.write_str("\")")
}

fn dpp_control(f: &mut Formatter, inst: &Inst) -> fmt::Result {
    let fi = match inst.dpp {
        Dpp::None => return Ok(()),
        Dpp::Dpp8 { sel, fi } => {
            f.write_str(" dpp8:[")?;
            for i in 0..8 {
                write!(f, "{}{}", if i == 0 { "" } else { "," }, sel >> (3 * i) & 7)?;
            }
            f.write_char(']')?;
            fi
        }
        Dpp::Dpp16 {
            ctrl,
            row_mask,
            bank_mask,
            bound_ctrl,
            fi,
        } => {
            let n = ctrl & 15;
            match ctrl >> 4 {
                0..=0xf => {
                    let lane = |i: u16| ctrl >> (2 * i) & 3;
                    let (a, b, c, d) = (lane(0), lane(1), lane(2), lane(3));
                    write!(f, " quad_perm:[{a},{b},{c},{d}]")?;
                }
                0x10 => write!(f, " row_shl:{n}")?,
                0x11 => write!(f, " row_shr:{n}")?,
                0x12 => write!(f, " row_ror:{n}")?,
                0x13 => f.write_str(match n {
                    0 => " wave_shl:1",
                    4 => " wave_rol:1",
                    8 => " wave_shr:1",
                    _ => " wave_ror:1",
                })?,
                0x14 => f.write_str(match n {
                    0 => " row_mirror",
                    1 => " row_half_mirror",
                    2 => " row_bcast:15",
                    _ => " row_bcast:31",
                })?,
                0x15 if inst.arch.is_gfx9() => write!(f, " row_newbcast:{n}")?,
                0x15 => write!(f, " row_share:{n}")?,
                _ => write!(f, " row_xmask:{n}")?,
            }
            write!(f, " row_mask:{row_mask:#x} bank_mask:{bank_mask:#x}")?;
            if bound_ctrl {
                f.write_str(" bound_ctrl:1")?;
            }
            fi
        }
    };
    f.write_str(if fi { " fi:1" } else { "" })
}
