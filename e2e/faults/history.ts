/**
 * The observations of clients, agents, and the database while replicas failed. A history is plain data, so that it can
 * be written to a file and checked again. Times are milliseconds since the start of the loop, except those of the
 * database.
 */

/** A request of a client. Each value of a write, and each token of an apply, is unique. */
export type ClientRequest =
  | { kind: 'write'; key: string; value: string }
  | { kind: 'read'; key: string }
  | { kind: 'apply'; node: string; token: string }
  | { kind: 'run'; assignment: string }
  /** A request that uses a session or a right, which may have ended. */
  | { kind: 'access'; access: string };

export interface Invoked {
  type: 'invoked';
  at: number;
  call: number;
  client: string;
  /** The replica that the client addressed, or `balancer`. */
  replica: string;
  request: ClientRequest;
}

export interface Succeeded {
  type: 'succeeded';
  at: number;
  call: number;
  /** The value that was read; null if there is none. */
  value?: string | null;
  /** The operation of an apply, or the run. */
  id?: string;
}

/** The request was refused, and changed nothing. */
export interface Refused {
  type: 'refused';
  at: number;
  call: number;
  status: number;
  code: string;
}

/** The request may have taken effect, or may still do so. */
export interface Unknown {
  type: 'unknown';
  at: number;
  call: number;
  reason: string;
}

/** An operation as a client read it. */
export interface OperationSeen {
  type: 'operation';
  /** When the client sent the request that read it, and when it got the answer. */
  at: number;
  answered: number;
  replica: string;
  operation: string;
  node: string;
  run: string | null;
  status: string;
  /** Unix seconds; null if it has not ended. */
  finished: number | null;
}

/** A run as a client read it. */
export interface RunSeen {
  type: 'run';
  at: number;
  replica: string;
  run: string;
  status: string;
  finished: boolean;
  results: readonly { node: string; operation: string | null; status: string }[];
}

/** An agent executed the content of an operation. Real agents report the token of the module, simulated ones the ID. */
export interface Effect {
  type: 'effect';
  node: string;
  operation: string | null;
  token: string | null;
}

/** An event of the audit log that a client received from a stream, or in an export. */
export interface EventSeen {
  type: 'event';
  at: number;
  replica: string;
  /** Each stream, with all connections that resume it, has a name; an export has the name `export`. */
  stream: string;
  place: number;
  hash: string;
  id: string;
  /** The event's details about a write, as JSON. */
  about: string;
}

/** The answer of a replica that verified the chain of the audit log. */
export interface ChainVerified {
  type: 'chain';
  at: number;
  replica: string;
  ok: boolean;
  fault: string | null;
}

/** A sign-in session or a right was ended: the request to end it has succeeded. */
export interface AccessEnded {
  type: 'access_ended';
  at: number;
  access: string;
}

/** An agent noticed that it has a link, or that it has none. */
export interface LinkSeen {
  type: 'link';
  at: number;
  node: string;
  linked: boolean;
}

/** A process took what a fence protects: an agent's link, or a lease. */
export interface Claimed {
  type: 'claimed';
  fence: string;
  /** Incarnation; empty if it was released. */
  holder: string;
  transaction: string;
  /** Time of the commit in milliseconds, by the clock of the database server. */
  committed: number;
}

/** A process committed a write that requires a claim. */
export interface FencedWrite {
  type: 'fenced_write';
  fence: string;
  holder: string;
  transaction: string;
  /** When the transaction began, in milliseconds, by the clock of the database server. */
  began: number;
  what: string;
}

/** Text that a terminal showed to its operator. */
export interface TerminalShown {
  type: 'shown';
  at: number;
  session: string;
  text: string;
}

/** The transcript of a terminal session that has ended. */
export interface TranscriptRead {
  type: 'transcript';
  session: string;
  /** When the session was last known to be open. */
  open: number;
  text: string;
}

/** A fault was injected. */
export interface FaultInjected {
  type: 'fault';
  at: number;
  until: number;
  kind: string;
  subject: string;
}

export type Entry =
  | Invoked
  | Succeeded
  | Refused
  | Unknown
  | OperationSeen
  | RunSeen
  | Effect
  | EventSeen
  | ChainVerified
  | AccessEnded
  | LinkSeen
  | Claimed
  | FencedWrite
  | TerminalShown
  | TranscriptRead
  | FaultInjected;

export type History = readonly Entry[];

/** Something that must never happen. */
export interface Violation {
  invariant: string;
  message: string;
}

type Of<T extends Entry['type']> = Extract<Entry, { type: T }>;

/** Returns the entries of one type, in their order. */
export const entriesOf = <T extends Entry['type']>(history: History, type: T): Of<T>[] =>
  history.filter((entry): entry is Of<T> => entry.type === type);

/** A request with its outcome; null if the history ends before it. */
export interface Call {
  invoked: Invoked;
  outcome: Succeeded | Refused | Unknown | null;
}

/** Returns the requests of the history with their outcomes, in the order in which they were sent. */
export function callsOf(history: History): Call[] {
  const outcomes = new Map<number, Call['outcome']>();
  for (const entry of history)
    if (entry.type === 'succeeded' || entry.type === 'refused' || entry.type === 'unknown')
      outcomes.set(entry.call, entry);
  return entriesOf(history, 'invoked').map((invoked) => ({ invoked, outcome: outcomes.get(invoked.call) ?? null }));
}
