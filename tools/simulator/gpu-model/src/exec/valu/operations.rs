//! The table of vector operations: VOP1, VOP2, VOPC, VOP3, VOP3P.
//!
//! A row applies a function to all lanes with `map1`, `map2` or `map3`. The types of the function's arguments and result
//! determine how operands are read and results are written ([`super::value`]). Operations that need more than one
//! expression are in the file of their subject.
//!
//! The RDNA3 guide, chapter 16, specifies the operations. A comment gives the reason for each deviation.

use half::f16;

use super::alu::Alu;
use super::compare;
use super::convert::{half_toward_zero, offset_i4, pack, saturate_u8, snorm, unorm};
use super::float::{Integral, frexp_exponent, max, maximum, med3, min, minimum};
use super::integer::{
    self, align, bfe_i32, bfe_u32, bfm, cls, clz, ctz, lerp_u8, low24, low24u, perm, sad_u8,
    sad_u16,
};
use super::matrix::Half;
use super::mfma::float8;
use super::transcend;
use super::value::Moved;
use crate::fault::Fault;
use crate::isa::{Encoding, Inst, Op};
use crate::wave::Wave;

/// Executes an instruction of any format except VOPD.
#[inline]
pub fn execute(wave: &mut Wave, inst: &Inst) -> Result<(), Fault> {
    operate(&mut Alu::new(wave, inst)?, inst.op)
}

/// Executes the operation `op` with the operands and modifiers in `alu`.
pub fn operate(alu: &mut Alu, op: Op) -> Result<(), Fault> {
    use Op::*;
    match op {
        V_NOP | V_PIPEFLUSH | V_CLREXCP => Ok(()),

        // Moves
        V_MOV_B32 => alu.map1(|a: Moved<f32>| a),
        V_MOV_B64 => alu.map1(|a: u64| a),
        V_ACCVGPR_READ_B32 => alu.accvgpr_read(),
        V_ACCVGPR_WRITE_B32 => alu.accvgpr_write(),
        V_ACCVGPR_MOV_B32 => alu.accvgpr_mov(),
        V_MOV_B16 => alu.map1(|a: Moved<f16>| a),
        V_CNDMASK_B32 => alu.cndmask::<f32>(),
        V_CNDMASK_B16 => alu.cndmask::<f16>(),
        V_SWAP_B32 => alu.swap(),
        V_SWAP_B16 => alu.swap_halves(),
        V_PACK_B32_F16 => {
            alu.map2(|a: Moved<f16>, b: Moved<f16>| pack(a.0.to_bits(), b.0.to_bits()))
        }
        V_MOVRELD_B32 => alu.movreld(),
        V_MOVRELS_B32 => alu.movrels(),
        V_MOVRELSD_B32 => alu.movrelsd(),
        V_MOVRELSD_2_B32 => alu.movrelsd_2(),
        V_SWAPREL_B32 => alu.swaprel(),

        // Across lanes
        V_READFIRSTLANE_B32 => alu.readfirstlane(),
        V_READLANE_B32 => alu.readlane(),
        V_WRITELANE_B32 => alu.writelane(),
        V_PERMLANE16_B32 => alu.permlane16(false),
        V_PERMLANEX16_B32 => alu.permlane16(true),
        V_PERMLANE16_VAR_B32 => alu.permlane16_var(false),
        V_PERMLANEX16_VAR_B32 => alu.permlane16_var(true),
        V_PERMLANE64_B32 => alu.permlane64(),
        V_MBCNT_LO_U32_B32 => alu.mbcnt(0),
        V_MBCNT_HI_U32_B32 => alu.mbcnt(32),

        // Bits
        V_NOT_B32 => alu.map1(|a: u32| !a),
        V_NOT_B16 => alu.map1(|a: u16| !a),
        V_AND_B32 => alu.map2(|a: u32, b: u32| a & b),
        V_AND_B16 => alu.map2(|a: u16, b: u16| a & b),
        V_OR_B32 => alu.map2(|a: u32, b: u32| a | b),
        V_OR_B16 => alu.map2(|a: u16, b: u16| a | b),
        V_XOR_B32 => alu.map2(|a: u32, b: u32| a ^ b),
        V_XOR_B16 => alu.map2(|a: u16, b: u16| a ^ b),
        V_XNOR_B32 => alu.map2(|a: u32, b: u32| !(a ^ b)),
        V_OR3_B32 => alu.map3(|a: u32, b: u32, c: u32| a | b | c),
        V_XOR3_B32 => alu.map3(|a: u32, b: u32, c: u32| a ^ b ^ c),
        V_AND_OR_B32 => alu.map3(|a: u32, b: u32, c: u32| a & b | c),
        V_BFI_B32 => alu.map3(|a: u32, b: u32, c: u32| a & b | !a & c),
        V_BFM_B32 => alu.map2(bfm),
        V_BFE_U32 => alu.map3(bfe_u32),
        V_BFE_I32 => alu.map3(bfe_i32),
        V_BFREV_B32 => alu.map1(u32::reverse_bits),
        V_BCNT_U32_B32 => alu.map2(|a: u32, b: u32| b.wrapping_add(a.count_ones())),
        V_CLZ_I32_U32 => alu.map1(clz),
        V_CTZ_I32_B32 => alu.map1(ctz),
        V_CLS_I32 => alu.map1(cls),
        V_PERM_B32 => alu.map3(perm),
        V_ALIGNBIT_B32 => alu.map3(|a: u32, b: u32, c: u16| align(a, b, u32::from(c & 31))),
        V_ALIGNBYTE_B32 => alu.map3(|a: u32, b: u32, c: u16| align(a, b, u32::from(c & 3) * 8)),

        // Shifts
        V_LSHLREV_B32 => alu.map2(|a: u32, b: u32| b << (a & 31)),
        V_LSHRREV_B32 => alu.map2(|a: u32, b: u32| b >> (a & 31)),
        V_ASHRREV_I32 => alu.map2(|a: u32, b: i32| b >> (a & 31)),
        V_LSHLREV_B16 => alu.map2(|a: u16, b: u16| b << (a & 15)),
        V_LSHRREV_B16 => alu.map2(|a: u16, b: u16| b >> (a & 15)),
        V_ASHRREV_I16 => alu.map2(|a: u16, b: i16| b >> (a & 15)),
        V_LSHLREV_B64 => alu.map2(|a: u32, b: u64| b << (a & 63)),
        V_LSHRREV_B64 => alu.map2(|a: u32, b: u64| b >> (a & 63)),
        V_ASHRREV_I64 => alu.map2(|a: u32, b: i64| b >> (a & 63)),
        V_LSHL_OR_B32 => alu.map3(|a: u32, b: u32, c: u32| a << (b & 31) | c),
        V_LSHL_ADD_U32 => alu.map3(|a: u32, b: u32, c: u32| (a << (b & 31)).wrapping_add(c)),
        V_ADD_LSHL_U32 => alu.map3(|a: u32, b: u32, c: u32| a.wrapping_add(b) << (c & 31)),

        // Addition and subtraction of integers
        V_ADD_NC_U32 => alu.clampable2(u32::wrapping_add, u32::saturating_add),
        V_SUB_NC_U32 => alu.clampable2(u32::wrapping_sub, u32::saturating_sub),
        V_SUBREV_NC_U32 => alu.clampable2(
            |a: u32, b: u32| b.wrapping_sub(a),
            |a: u32, b: u32| b.saturating_sub(a),
        ),
        V_ADD_NC_I32 => alu.clampable2(i32::wrapping_add, i32::saturating_add),
        V_SUB_NC_I32 => alu.clampable2(i32::wrapping_sub, i32::saturating_sub),
        V_ADD_NC_U16 => alu.clampable2(u16::wrapping_add, u16::saturating_add),
        V_SUB_NC_U16 => alu.clampable2(u16::wrapping_sub, u16::saturating_sub),
        V_SUBREV_NC_U16 => alu.clampable2(
            |a: u16, b: u16| b.wrapping_sub(a),
            |a: u16, b: u16| b.saturating_sub(a),
        ),
        V_ADD_NC_I16 => alu.clampable2(i16::wrapping_add, i16::saturating_add),
        V_SUB_NC_I16 => alu.clampable2(i16::wrapping_sub, i16::saturating_sub),
        V_LSHL_ADD_U64 => alu.map3(|a: u64, b: u32, c: u64| (a << (b & 7)).wrapping_add(c)),
        V_ADD3_U32 => alu.map3(|a: u32, b: u32, c: u32| a.wrapping_add(b).wrapping_add(c)),
        V_XAD_U32 => alu.map3(|a: u32, b: u32, c: u32| (a ^ b).wrapping_add(c)),
        V_ADD_CO_U32 => alu.carry(0, |a, b, _| a + b),
        V_SUB_CO_U32 => alu.carry(0, |a, b, _| a - b),
        V_SUBREV_CO_U32 => alu.carry(0, |a, b, _| b - a),
        V_ADD_CO_CI_U32 => alu.carry(alu.mask_source(2)?, |a, b, carry| a + b + carry),
        V_SUB_CO_CI_U32 => alu.carry(alu.mask_source(2)?, |a, b, carry| a - b - carry),
        V_SUBREV_CO_CI_U32 => alu.carry(alu.mask_source(2)?, |a, b, carry| b - a - carry),
        V_SAD_U8 => {
            alu.exact3(|a: u32, b: u32, c: u32| i64::from(sad_u8(a, b, false)) + i64::from(c))
        }
        V_SAD_HI_U8 => alu
            .exact3(|a: u32, b: u32, c: u32| (i64::from(sad_u8(a, b, false)) << 16) + i64::from(c)),
        V_SAD_U16 => alu.exact3(|a: u32, b: u32, c: u32| i64::from(sad_u16(a, b)) + i64::from(c)),
        V_SAD_U32 => alu.exact3(|a: u32, b: u32, c: u32| i64::from(a.abs_diff(b)) + i64::from(c)),
        V_MSAD_U8 => {
            alu.exact3(|a: u32, b: u32, c: u32| i64::from(sad_u8(a, b, true)) + i64::from(c))
        }
        V_QSAD_PK_U16_U8 => alu.quad_sad(false),
        V_MQSAD_PK_U16_U8 => alu.quad_sad(true),
        V_MQSAD_U32_U8 => alu.quad_sad_wide(),
        V_LERP_U8 => alu.map3(lerp_u8),

        // Multiplication of integers
        V_MUL_LO_U32 => alu.map2(u32::wrapping_mul),
        V_MUL_HI_U32 => alu.map2(|a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        V_MUL_HI_I32 => alu.map2(|a: i32, b: i32| ((i64::from(a) * i64::from(b)) >> 32) as i32),
        V_MUL_I32_I24 => alu.map2(|a: i32, b: i32| (low24(a) * low24(b)) as i32),
        V_MUL_HI_I32_I24 => alu.map2(|a: i32, b: i32| ((low24(a) * low24(b)) >> 32) as i32),
        V_MUL_U32_U24 => alu.map2(|a: u32, b: u32| (low24u(a) * low24u(b)) as u32),
        V_MUL_HI_U32_U24 => alu.map2(|a: u32, b: u32| ((low24u(a) * low24u(b)) >> 32) as u32),
        V_MUL_LO_U16 => alu.clampable2(u16::wrapping_mul, u16::saturating_mul),
        V_MAD_I32_I24 => alu.exact3(|a: i32, b: i32, c: i32| low24(a) * low24(b) + i64::from(c)),
        V_MAD_U32_U24 => alu.exact3(|a: u32, b: u32, c: u32| low24u(a) * low24u(b) + i64::from(c)),
        V_MAD_U16 | V_MAD_LEGACY_U16 => {
            alu.exact3(|a: u16, b: u16, c: u16| i64::from(a) * i64::from(b) + i64::from(c))
        }
        V_MAD_I16 | V_MAD_LEGACY_I16 => {
            alu.exact3(|a: i16, b: i16, c: i16| i64::from(a) * i64::from(b) + i64::from(c))
        }
        V_MAD_U32_U16 => {
            alu.exact3(|a: u16, b: u16, c: u32| i64::from(a) * i64::from(b) + i64::from(c))
        }
        V_MAD_I32_I16 => {
            alu.exact3(|a: i16, b: i16, c: i32| i64::from(a) * i64::from(b) + i64::from(c))
        }
        V_MAD_U64_U32 => alu
            .map3_carry(|a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).overflowing_add(c)),
        // The carry is the sign of the exact 65-bit sum.
        V_MAD_I64_I32 => alu.map3_carry(|a: i32, b: i32, c: i64| {
            let exact = i128::from(a) * i128::from(b) + i128::from(c);
            (exact as i64, exact < 0)
        }),

        // Minimum, maximum and median of integers
        V_MIN_U32 => alu.map2(u32::min),
        V_MAX_U32 => alu.map2(u32::max),
        V_MIN_I32 => alu.map2(i32::min),
        V_MAX_I32 => alu.map2(i32::max),
        V_MIN_U16 => alu.map2(u16::min),
        V_MAX_U16 => alu.map2(u16::max),
        V_MIN_I16 => alu.map2(i16::min),
        V_MAX_I16 => alu.map2(i16::max),
        V_MIN3_U32 => alu.map3(|a: u32, b: u32, c: u32| a.min(b).min(c)),
        V_MAX3_U32 => alu.map3(|a: u32, b: u32, c: u32| a.max(b).max(c)),
        V_MED3_U32 => alu.map3(integer::med3::<u32>),
        V_MIN3_I32 => alu.map3(|a: i32, b: i32, c: i32| a.min(b).min(c)),
        V_MAX3_I32 => alu.map3(|a: i32, b: i32, c: i32| a.max(b).max(c)),
        V_MED3_I32 => alu.map3(integer::med3::<i32>),
        V_MIN3_U16 => alu.map3(|a: u16, b: u16, c: u16| a.min(b).min(c)),
        V_MAX3_U16 => alu.map3(|a: u16, b: u16, c: u16| a.max(b).max(c)),
        V_MED3_U16 => alu.map3(integer::med3::<u16>),
        V_MIN3_I16 => alu.map3(|a: i16, b: i16, c: i16| a.min(b).min(c)),
        V_MAX3_I16 => alu.map3(|a: i16, b: i16, c: i16| a.max(b).max(c)),
        V_MED3_I16 => alu.map3(integer::med3::<i16>),
        V_MAXMIN_U32 => alu.map3(|a: u32, b: u32, c: u32| a.max(b).min(c)),
        V_MINMAX_U32 => alu.map3(|a: u32, b: u32, c: u32| a.min(b).max(c)),
        V_MAXMIN_I32 => alu.map3(|a: i32, b: i32, c: i32| a.max(b).min(c)),
        V_MINMAX_I32 => alu.map3(|a: i32, b: i32, c: i32| a.min(b).max(c)),

        // Addition and multiplication of floats
        V_ADD_F16 | S_ADD_F16 => alu.add::<f16>(),
        V_ADD_F32 | S_ADD_F32 => alu.add::<f32>(),
        V_ADD_F64 => alu.add::<f64>(),
        V_SUB_F16 | S_SUB_F16 => alu.sub::<f16>(),
        V_SUB_F32 | S_SUB_F32 => alu.sub::<f32>(),
        V_SUBREV_F16 => alu.subrev::<f16>(),
        V_SUBREV_F32 => alu.subrev::<f32>(),
        V_MUL_F16 | S_MUL_F16 => alu.mul::<f16>(),
        V_MUL_F32 | S_MUL_F32 => alu.mul::<f32>(),
        V_MUL_F64 => alu.mul::<f64>(),
        V_FMA_F16 | V_FMA_LEGACY_F16 | V_FMAMK_F16 | V_FMAAK_F16 => alu.fma::<f16>(),
        V_FMA_F32 | V_FMAMK_F32 | V_FMAAK_F32 | S_FMAMK_F32 | S_FMAAK_F32 => alu.fma::<f32>(),
        V_FMA_F64 => alu.fma::<f64>(),
        V_FMAC_F16 | S_FMAC_F16 => alu.fmac::<f16>(),
        V_FMAC_F32 | S_FMAC_F32 => alu.fmac::<f32>(),
        V_FMAC_F64 => alu.fmac::<f64>(),
        V_MUL_DX9_ZERO_F32 => alu.mul_dx9(),
        V_FMA_DX9_ZERO_F32 => alu.fma_dx9(),
        V_FMAC_DX9_ZERO_F32 => {
            alu.accumulate();
            alu.fma_dx9()
        }
        V_MAD_F32 | V_MADMK_F32 | V_MADAK_F32 => alu.mad_f32(),
        V_MAC_F32 => alu.mac_f32(),
        V_MULLIT_F32 => alu.mullit(),

        // Minimum, maximum and median of floats
        V_MIN_F16 | S_MIN_NUM_F16 => alu.pick2(min::<f16>),
        V_MIN_F32 | S_MIN_NUM_F32 => alu.pick2(min::<f32>),
        V_MIN_F64 => alu.pick2(min::<f64>),
        V_MAX_F16 | S_MAX_NUM_F16 => alu.pick2(max::<f16>),
        V_MAX_F32 | S_MAX_NUM_F32 => alu.pick2(max::<f32>),
        V_MAX_F64 => alu.pick2(max::<f64>),
        V_MINIMUM_F16 | S_MINIMUM_F16 => alu.pick2(|a: f16, b, _| minimum(a, b)),
        V_MINIMUM_F32 | S_MINIMUM_F32 => alu.pick2(|a: f32, b, _| minimum(a, b)),
        V_MINIMUM_F64 => alu.pick2(|a: f64, b, _| minimum(a, b)),
        V_MAXIMUM_F16 | S_MAXIMUM_F16 => alu.pick2(|a: f16, b, _| maximum(a, b)),
        V_MAXIMUM_F32 | S_MAXIMUM_F32 => alu.pick2(|a: f32, b, _| maximum(a, b)),
        V_MAXIMUM_F64 => alu.pick2(|a: f64, b, _| maximum(a, b)),
        V_MINIMUM3_F16 => alu.pick3(|a: f16, b, c, _| minimum(minimum(a, b), c)),
        V_MINIMUM3_F32 => alu.pick3(|a: f32, b, c, _| minimum(minimum(a, b), c)),
        V_MAXIMUM3_F16 => alu.pick3(|a: f16, b, c, _| maximum(maximum(a, b), c)),
        V_MAXIMUM3_F32 => alu.pick3(|a: f32, b, c, _| maximum(maximum(a, b), c)),
        V_MINIMUMMAXIMUM_F16 => alu.pick3(|a: f16, b, c, _| maximum(minimum(a, b), c)),
        V_MINIMUMMAXIMUM_F32 => alu.pick3(|a: f32, b, c, _| maximum(minimum(a, b), c)),
        V_MAXIMUMMINIMUM_F16 => alu.pick3(|a: f16, b, c, _| minimum(maximum(a, b), c)),
        V_MAXIMUMMINIMUM_F32 => alu.pick3(|a: f32, b, c, _| minimum(maximum(a, b), c)),
        V_MIN3_F16 => alu.pick3(|a: f16, b, c, ieee| min(min(a, b, ieee), c, ieee)),
        V_MIN3_F32 => alu.pick3(|a: f32, b, c, ieee| min(min(a, b, ieee), c, ieee)),
        V_MAX3_F16 => alu.pick3(|a: f16, b, c, ieee| max(max(a, b, ieee), c, ieee)),
        V_MAX3_F32 => alu.pick3(|a: f32, b, c, ieee| max(max(a, b, ieee), c, ieee)),
        V_MED3_F16 => alu.pick3(med3::<f16>),
        V_MED3_F32 => alu.pick3(med3::<f32>),
        V_MAXMIN_F16 => alu.pick3(|a: f16, b, c, ieee| min(max(a, b, ieee), c, ieee)),
        V_MAXMIN_F32 => alu.pick3(|a: f32, b, c, ieee| min(max(a, b, ieee), c, ieee)),
        V_MINMAX_F16 => alu.pick3(|a: f16, b, c, ieee| max(min(a, b, ieee), c, ieee)),
        V_MINMAX_F32 => alu.pick3(|a: f32, b, c, ieee| max(min(a, b, ieee), c, ieee)),
        V_CUBEID_F32 => alu.cube(|face| f32::from(face.id)),
        V_CUBESC_F32 => alu.cube(|face| face.s),
        V_CUBETC_F32 => alu.cube(|face| face.t),
        V_CUBEMA_F32 => alu.cube(|face| face.major * 2.0),

        // Rounding, fractions and exponents of floats
        V_TRUNC_F16 | S_TRUNC_F16 => alu.integral::<f16>(Integral::Trunc),
        V_TRUNC_F32 | S_TRUNC_F32 => alu.integral::<f32>(Integral::Trunc),
        V_TRUNC_F64 => alu.integral::<f64>(Integral::Trunc),
        V_CEIL_F16 | S_CEIL_F16 => alu.integral::<f16>(Integral::Ceil),
        V_CEIL_F32 | S_CEIL_F32 => alu.integral::<f32>(Integral::Ceil),
        V_CEIL_F64 => alu.integral::<f64>(Integral::Ceil),
        V_FLOOR_F16 | S_FLOOR_F16 => alu.integral::<f16>(Integral::Floor),
        V_FLOOR_F32 | S_FLOOR_F32 => alu.integral::<f32>(Integral::Floor),
        V_FLOOR_F64 => alu.integral::<f64>(Integral::Floor),
        V_RNDNE_F16 | S_RNDNE_F16 => alu.integral::<f16>(Integral::NearestEven),
        V_RNDNE_F32 | S_RNDNE_F32 => alu.integral::<f32>(Integral::NearestEven),
        V_RNDNE_F64 => alu.integral::<f64>(Integral::NearestEven),
        V_FRACT_F16 => alu.fract::<f16>(),
        V_FRACT_F32 => alu.fract::<f32>(),
        V_FRACT_F64 => alu.fract::<f64>(),
        V_FREXP_MANT_F16 => alu.frexp_mantissa::<f16>(),
        V_FREXP_MANT_F32 => alu.frexp_mantissa::<f32>(),
        V_FREXP_MANT_F64 => alu.frexp_mantissa::<f64>(),
        V_FREXP_EXP_I16_F16 => alu.map1(|a: f16| frexp_exponent(a) as i16),
        V_FREXP_EXP_I32_F32 => alu.map1(frexp_exponent::<f32>),
        V_FREXP_EXP_I32_F64 => alu.map1(frexp_exponent::<f64>),
        V_LDEXP_F16 => alu.ldexp::<f16, i16>(),
        V_LDEXP_F32 => alu.ldexp::<f32, i32>(),
        V_LDEXP_F64 => alu.ldexp::<f64, i32>(),

        // Division
        V_DIV_SCALE_F32 => alu.div_scale::<f32>(),
        V_DIV_SCALE_F64 => alu.div_scale::<f64>(),
        V_DIV_FMAS_F32 => alu.div_fmas::<f32>(),
        V_DIV_FMAS_F64 => alu.div_fmas::<f64>(),
        V_DIV_FIXUP_F16 | V_DIV_FIXUP_LEGACY_F16 => alu.div_fixup_f16(),
        V_DIV_FIXUP_F32 => alu.div_fixup::<f32>(),
        V_DIV_FIXUP_F64 => alu.div_fixup::<f64>(),

        // Transcendentals
        V_EXP_F16 | V_S_EXP_F16 => alu.transcend::<f16>(f64::exp2),
        V_EXP_F32 | V_S_EXP_F32 => alu.transcend::<f32>(f64::exp2),
        V_LOG_F16 | V_S_LOG_F16 => alu.transcend::<f16>(f64::log2),
        V_LOG_F32 | V_S_LOG_F32 => alu.transcend::<f32>(f64::log2),
        V_RCP_F16 | V_S_RCP_F16 => alu.transcend::<f16>(transcend::rcp),
        V_RCP_F32 | V_RCP_IFLAG_F32 | V_S_RCP_F32 => alu.transcend::<f32>(transcend::rcp),
        V_RCP_F64 => alu.transcend::<f64>(transcend::rcp),
        V_RSQ_F16 | V_S_RSQ_F16 => alu.transcend::<f16>(transcend::rsq),
        V_RSQ_F32 | V_S_RSQ_F32 => alu.transcend::<f32>(transcend::rsq),
        V_RSQ_F64 => alu.transcend::<f64>(transcend::rsq),
        V_SQRT_F16 | V_S_SQRT_F16 => alu.transcend::<f16>(f64::sqrt),
        V_SQRT_F32 | V_S_SQRT_F32 => alu.transcend::<f32>(f64::sqrt),
        V_SQRT_F64 => alu.transcend::<f64>(f64::sqrt),
        V_SIN_F16 => alu.trigonometric::<f16>(transcend::sin),
        V_SIN_F32 => alu.trigonometric::<f32>(transcend::sin),
        V_COS_F16 => alu.trigonometric::<f16>(transcend::cos),
        V_COS_F32 => alu.trigonometric::<f32>(transcend::cos),
        V_TRIG_PREOP_F64 => alu.trig_preop(),

        // Conversions
        V_CVT_F16_F32 | S_CVT_F16_F32 => alu.cvt_float::<f32, f16>(),
        V_CVT_F32_F16 | S_CVT_F32_F16 => alu.cvt_float::<f16, f32>(),
        S_CVT_HI_F32_F16 => {
            alu.opsel |= 1;
            alu.cvt_float::<f16, f32>()
        }
        V_CVT_F32_F64 => alu.cvt_float::<f64, f32>(),
        V_CVT_F64_F32 => alu.cvt_float::<f32, f64>(),
        V_CVT_F16_U16 => alu.cvt_from_int::<u16, f16>(),
        V_CVT_F16_I16 => alu.cvt_from_int::<i16, f16>(),
        V_CVT_F32_U32 | S_CVT_F32_U32 => alu.cvt_from_int::<u32, f32>(),
        V_CVT_F32_I32 | S_CVT_F32_I32 => alu.cvt_from_int::<i32, f32>(),
        V_CVT_F64_U32 => alu.cvt_from_int::<u32, f64>(),
        V_CVT_F64_I32 => alu.cvt_from_int::<i32, f64>(),
        V_CVT_U16_F16 => alu.cvt_to_int::<f16, _>(|a| a as u16),
        V_CVT_I16_F16 => alu.cvt_to_int::<f16, _>(|a| a as i16),
        V_CVT_U32_F32 | S_CVT_U32_F32 => alu.cvt_to_int::<f32, _>(|a| a as u32),
        V_CVT_I32_F32 | S_CVT_I32_F32 => alu.cvt_to_int::<f32, _>(|a| a as i32),
        V_CVT_U32_F64 => alu.cvt_to_int::<f64, _>(|a| a as u32),
        V_CVT_I32_F64 => alu.cvt_to_int::<f64, _>(|a| a as i32),
        V_CVT_FLOOR_I32_F32 => alu.cvt_to_int::<f32, _>(|a| a.floor() as i32),
        V_CVT_NEAREST_I32_F32 => alu.cvt_to_int::<f32, _>(|a| (a + 0.5).floor() as i32),
        V_CVT_NORM_I16_F16 => alu.map1(snorm::<f16>),
        V_CVT_NORM_U16_F16 => alu.map1(unorm::<f16>),
        V_CVT_OFF_F32_I4 => alu.map1(offset_i4),
        V_CVT_F32_FP8 => alu.map1(|a: u32| float8(a as u8, 3) as f32),
        V_CVT_F32_BF8 => alu.map1(|a: u32| float8(a as u8, 2) as f32),
        V_CVT_F32_UBYTE0 => alu.cvt_ubyte(0),
        V_CVT_F32_UBYTE1 => alu.cvt_ubyte(1),
        V_CVT_F32_UBYTE2 => alu.cvt_ubyte(2),
        V_CVT_F32_UBYTE3 => alu.cvt_ubyte(3),
        V_CVT_I32_I16 => alu.map1(|a: i16| i32::from(a)),
        V_CVT_U32_U16 => alu.map1(|a: u16| u32::from(a)),
        V_SAT_PK_U8_I16 => alu.map1(saturate_u8),
        V_CVT_PK_RTZ_F16_F32 | S_CVT_PK_RTZ_F16_F32 => alu.cvt_pack(half_toward_zero),
        V_CVT_PK_I16_F32 => alu.cvt_pack(|a: f32| a as i16 as u16),
        V_CVT_PK_U16_F32 => alu.cvt_pack(|a: f32| a as u16),
        V_CVT_PK_I16_I32 => alu.cvt_pack(|a: i32| a.clamp(-0x8000, 0x7fff) as u16),
        V_CVT_PK_U16_U32 => alu.cvt_pack(|a: u32| a.min(0xffff) as u16),
        V_CVT_PK_NORM_I16_F16 => alu.cvt_pack(snorm::<f16>),
        V_CVT_PK_NORM_U16_F16 => alu.cvt_pack(unorm::<f16>),
        V_CVT_PK_NORM_I16_F32 => alu.cvt_pack(snorm::<f32>),
        V_CVT_PK_NORM_U16_F32 => alu.cvt_pack(unorm::<f32>),
        V_CVT_PK_U8_F32 => alu.map3(|a: f32, byte: u32, c: u32| {
            let shift = (byte & 3) * 8;
            c & !(0xff << shift) | u32::from(a as u8) << shift
        }),

        // Packed
        V_PK_ADD_I16 => alu.pk_i16(|a, b| a + b),
        V_PK_ADD_U16 => alu.pk_u16(|a, b| a + b),
        V_PK_SUB_I16 => alu.pk_i16(|a, b| a - b),
        V_PK_SUB_U16 => alu.pk_u16(|a, b| a - b),
        V_PK_MUL_LO_U16 => alu.pk_u16(|a, b| a * b),
        V_PK_MAD_I16 => alu.pk_mad_i16(),
        V_PK_MAD_U16 => alu.pk_mad_u16(),
        V_PK_MIN_I16 => alu.pk_i16(i64::min),
        V_PK_MIN_U16 => alu.pk_u16(i64::min),
        V_PK_MAX_I16 => alu.pk_i16(i64::max),
        V_PK_MAX_U16 => alu.pk_u16(i64::max),
        V_PK_LSHLREV_B16 => alu.pk_u16(|a, b| (b << (a & 15)) & 0xffff),
        V_PK_LSHRREV_B16 => alu.pk_u16(|a, b| b >> (a & 15)),
        V_PK_ASHRREV_I16 => alu.pk_i16(|a, b| b >> (a & 15)),
        V_PK_ADD_F16 => alu.pk_add_f16(),
        V_PK_MUL_F16 => alu.pk_mul_f16(),
        V_PK_FMA_F16 => alu.pk_fma_f16(),
        V_PK_FMAC_F16 => alu.pk_fmac_f16(),
        V_PK_ADD_F32 => alu.pk_add_f32(),
        V_PK_MUL_F32 => alu.pk_mul_f32(),
        V_PK_FMA_F32 => alu.pk_fma_f32(),
        V_PK_MOV_B32 => alu.pk_mov_b32(),
        V_PK_MIN_F16 => alu.pk_pick_f16(min),
        V_PK_MAX_F16 => alu.pk_pick_f16(max),
        V_PK_MINIMUM_F16 => alu.pk_pick_f16(|a, b, _| minimum(a, b)),
        V_PK_MAXIMUM_F16 => alu.pk_pick_f16(|a, b, _| maximum(a, b)),
        V_FMA_MIX_F32 => alu.fma_mix_f32(),
        V_FMA_MIXLO_F16 => alu.fma_mix_f16(false),
        V_FMA_MIXHI_F16 => alu.fma_mix_f16(true),

        // Dot products and matrices
        V_DOT2_F32_F16 => alu.dot2_f32_f16(),
        V_DOT2_F32_BF16 => alu.dot2_f32_bf16(),
        V_DOT2ACC_F32_F16 => alu.dot2acc_f32_f16(),
        V_DOT2ACC_F32_BF16 => alu.dot2acc_f32_bf16(),
        V_DOT2_F16_F16 => alu.dot2_f16(),
        V_DOT2_BF16_BF16 => alu.dot2_bf16(),
        V_DOT4_I32_IU8 => alu.dot_integer(8, true),
        V_DOT4_U32_U8 => alu.dot_integer(8, false),
        V_DOT8_I32_IU4 => alu.dot_integer(4, true),
        V_DOT8_U32_U4 => alu.dot_integer(4, false),
        V_DOT2_I32_I16 => alu.dot_gfx9(16, true),
        V_DOT2_U32_U16 => alu.dot_gfx9(16, false),
        V_DOT4_I32_I8 => alu.dot_gfx9(8, true),
        V_DOT8_I32_I4 => alu.dot_gfx9(4, true),
        V_DOT2C_I32_I16 => alu.dot_accumulate(16),
        V_DOT4C_I32_I8 => alu.dot_accumulate(8),
        V_DOT8C_I32_I4 => alu.dot_accumulate(4),
        V_WMMA_F32_16X16X16_F16 => alu.wmma_f32(Half::F16),
        V_WMMA_F32_16X16X16_BF16 => alu.wmma_f32(Half::Bf16),
        V_WMMA_F16_16X16X16_F16 => alu.wmma_half(Half::F16),
        V_WMMA_BF16_16X16X16_BF16 => alu.wmma_half(Half::Bf16),
        V_WMMA_I32_16X16X16_IU8 => alu.wmma_integer(8),
        V_WMMA_I32_16X16X16_IU4 => alu.wmma_integer(4),

        _ => {
            let row = alu.inst.spec;
            if row.format == Encoding::Mai {
                return alu.mfma();
            }
            match row.format {
                Encoding::Vopc => compare::execute(alu, row.code),
                Encoding::Sopc => compare::scalar(alu, row.code),
                _ => Err(Fault::Unknown),
            }
        }
    }
}
