//! Models of tests and experiments that wrap another one: they change a method or two of the trait `Model`,
//! and delegate the rest to the model within. A file of its own, which other packages include by its path.

/// Writes the methods of `Model` that are delegated to the model in this field: all that every model must
/// have, but for `forward`, which is delegated too where `forward` is written behind the field.
macro_rules! delegate_model {
    ($model:tt, forward) => {
        delegate_model!($model);

        fn forward(
            &mut self,
            tokens: &[domino::TokenId],
            rows: domino::model::Rows<'_>,
        ) -> Result<domino::model::Logits, Self::Error> {
            self.$model.forward(tokens, rows)
        }
    };
    ($model:tt) => {
        fn position(&self) -> usize {
            self.$model.position()
        }

        fn context(&self) -> usize {
            self.$model.context()
        }

        fn vocabulary_size(&self) -> usize {
            self.$model.vocabulary_size()
        }

        fn truncate(&mut self, position: usize) -> Result<(), Self::Error> {
            self.$model.truncate(position)
        }
    };
}

pub(crate) use delegate_model;
