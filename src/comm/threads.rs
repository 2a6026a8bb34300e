//! Threads of one process as ranks.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use super::{Communicator, Incoming, Outgoing};
use crate::error::{Error, Result};

/// A rank that is a thread; the others are threads of the same process. Each rank trains a flow of its own, on an engine
/// of its own.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::sync::Arc;
/// use hintflow::comm::Threads;
/// use hintflow::{Dataset, Engine, Result, TrainConfig, Trainer};
///
/// # fn main() -> Result<()> {
/// # let rows: Vec<f32> = (0..600).map(|i| ((i * 37 % 101) as f32).sin()).collect();
/// let data = Dataset::from_rows(&rows, 3).build()?;
/// let train = |rank: Threads| -> Result<Vec<f32>> {
///     let mut flow = data.flow().width(8).build(&Engine::cpu_with_threads(1)?)?;
///     let trainer = Trainer::new(&mut flow, &data, TrainConfig::default().epochs(1))?;
///     trainer.with_ranks(Arc::new(rank))?.fit(|_| ControlFlow::Continue(()))?;
///     flow.sample(5, 1)
/// };
/// let samples = std::thread::scope(|scope| {
///     let ranks: Vec<_> = Threads::world(2).into_iter().map(|rank| scope.spawn(|| train(rank))).collect();
///     ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect::<Result<Vec<_>>>()
/// })?;
/// assert_eq!(samples[0], samples[1]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Threads {
    rank: usize,
    /// To each rank.
    send: Vec<Mutex<Sender<Vec<u8>>>>,
    /// From each rank.
    receive: Vec<Mutex<Receiver<Vec<u8>>>>,
}

impl Threads {
    /// So many ranks, at least one; each is to be moved to a thread of its own.
    pub fn world(size: usize) -> Vec<Self> {
        let size = size.max(1);
        let mut ranks: Vec<Self> = (0..size).map(|rank| Self { rank, send: Vec::new(), receive: Vec::new() }).collect();
        for from in 0..size {
            for to in 0..size {
                let (send, receive) = channel();
                ranks[from].send.push(Mutex::new(send));
                ranks[to].receive.push(Mutex::new(receive));
            }
        }
        ranks
    }
}

impl Communicator for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.send.len()
    }

    fn host(&self) -> String {
        super::host()
    }

    fn exchange(&self, send: &[Outgoing<'_>], receive: &mut [Incoming<'_>]) -> Result<()> {
        let gone = |rank: usize| Error::Ranks { what: format!("rank {rank} is gone: its thread has ended") };
        for message in send {
            let channel = self.send[message.to].lock().unwrap_or_else(PoisonError::into_inner);
            channel.send(message.bytes.to_vec()).map_err(|_| gone(message.to))?;
        }
        for message in receive {
            let channel = self.receive[message.from].lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = channel.recv().map_err(|_| gone(message.from))?;
            assert_eq!(bytes.len(), message.bytes.len(), "ranks agree on the length of a message");
            message.bytes.copy_from_slice(&bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_order_and_a_rank_that_is_gone_is_named() {
        let mut ranks = Threads::world(2);
        let (one, zero) = (ranks.pop().unwrap(), ranks.pop().unwrap());
        zero.exchange(&[Outgoing { to: 1, bytes: &[1] }, Outgoing { to: 1, bytes: &[2, 3] }], &mut []).unwrap();
        let (mut first, mut second) = ([0; 1], [0; 2]);
        let mut receive = [Incoming { from: 0, bytes: &mut first }, Incoming { from: 0, bytes: &mut second }];
        one.exchange(&[], &mut receive).unwrap();
        assert_eq!((first, second), ([1], [2, 3]));
        drop(one);
        let error = zero.exchange(&[], &mut [Incoming { from: 1, bytes: &mut first }]).unwrap_err();
        assert!(error.to_string().contains("rank 1 is gone"), "{error}");
    }
}
