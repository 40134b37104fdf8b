//! Cube maps: the face that a direction intersects, and the coordinates on it. Also `v_mullit`.

use super::alu::Alu;
use super::float::product;
use crate::fault::Fault;

/// The results of the four operations for one direction.
pub struct Face {
    pub id: u8,
    pub s: f32,
    pub t: f32,
    pub major: f32,
}

fn face(x: f32, y: f32, z: f32) -> Face {
    let choose = |negative: bool, a: f32, b: f32| if negative { a } else { b };
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        Face {
            id: 4 + u8::from(z < 0.0),
            s: choose(z < 0.0, -x, x),
            t: -y,
            major: z,
        }
    } else if y.abs() >= x.abs() {
        Face {
            id: 2 + u8::from(y < 0.0),
            s: x,
            t: choose(y < 0.0, -z, z),
            major: y,
        }
    } else {
        Face {
            id: u8::from(x < 0.0),
            s: choose(x < 0.0, z, -z),
            t: -y,
            major: x,
        }
    }
}

impl Alu<'_> {
    pub fn cube(&mut self, f: impl Fn(Face) -> f32) -> Result<(), Fault> {
        self.map3(|x: f32, y: f32, z: f32| f(face(x, y, z)))
    }

    /// `v_mullit_f32`: a product for lighting, with special cases for its second and third source.
    pub fn mullit(&mut self) -> Result<(), Fault> {
        let round = self.round::<f32>();
        self.map3(|a: f32, b: f32, c: f32| {
            let special = b == -f32::MAX || b == f32::NEG_INFINITY || b.is_nan();
            if special || c <= 0.0 || c.is_nan() {
                -f32::MAX
            } else {
                product(a, b, round)
            }
        })
    }
}
