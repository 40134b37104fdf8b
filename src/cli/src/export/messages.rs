//! Messages of protocol buffers.

/// Declares messages. After each field are its number, and its kind as in prost's attribute.
macro_rules! messages {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            $($(#[$note:meta])* $field:ident: $type:ty = $tag:tt ($($kind:tt)*);)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub struct $name {
            $($(#[$note])* #[prost($($kind)*, tag = $tag)] pub $field: $type,)*
        }
    )*};
}

pub(super) use messages;
