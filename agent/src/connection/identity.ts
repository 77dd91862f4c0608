import { join } from 'node:path';
import { idOfKey } from '@muster/protocol';
import { keyStatementLimits, keyStatementSchema } from '@muster/protocol/wire';
import {
  ensurePrivateDirectory,
  readPrivateFile,
  removePrivateFile,
  writePrivateFile,
} from '../host/files/private-file.ts';
import { type AgentKey, hexOf, keyOfPem, newKeyPem } from './agent-key.ts';
import { type NextKey, nextKeyPath, readNextKey, type Statement } from './next-key.ts';

/** Since this version of the protocol an orchestrator can be shown a new key. */
const keysChangeSince = 4;
/** Since this version it can be shown how the former keys came in the place of each other. */
const earlierShownSince = 5;

/** A key to say hello with, and what shows where it comes from. */
export interface ShownKey {
  key: AgentKey;
  statement: Statement | null;
  /** What shows that of the former key, of the one before that, and so on. */
  earlier: readonly Statement[];
}

/** Who an agent is, and by which key it shows that. */
export interface AgentIdentity {
  readonly nodeId: string;
  /**
   * The key for a hello to an orchestrator that speaks these versions: a new one first.
   * @param orchestratorKey hex
   * @throws Error when there is a new one that cannot be read
   */
  toShow(versions: readonly number[], orchestratorKey: string): ShownKey;
  /** The key in force, for a hello. */
  inForce(): ShownKey;
  /** A new key waits to be shown. @throws Error when it cannot be read */
  hasNext(): boolean;
  /**
   * The orchestrator has welcomed this agent under a key.
   * @param nodeId who the agent is there; undefined: it does not say
   * @returns true when the key is a new one, which is in force from now on
   * @throws Error when the disk does not take that: the next hello shows the key again
   */
  welcomed(shown: ShownKey, nodeId: string | undefined): boolean;
  /**
   * The orchestrator does not take a key as what its statement says: a new one is dropped.
   * @returns true when it was a new one
   */
  refused(shown: ShownKey): boolean;
  /**
   * The orchestrator knows none of the former keys. It is shown the key in force without statements from now on, until
   * this process ends; they stay on disk, for the orchestrator may be restored from a later backup.
   * @param orchestratorKey hex
   */
  unknownTo(orchestratorKey: string): void;
}

/** What is kept of keys that were changed; counts while one of them is in force. */
interface History {
  node_id: string;
  /** Hex: the one before, and the one that took its place. */
  keys: string[];
  statement: Statement | null;
  /** The statements before that one, newest first. Absent: written by an earlier release. */
  earlier?: Statement[];
}

/**
 * The keys of a data directory: `agent.key` is the one in force; `agent.key.next` one that waits, with what the other says
 * of it; `agent-keys.json` who this agent is, once that does not follow from its key any more. A new key is in force when
 * it replaces `agent.key`, which is one rename; until then both are there.
 */
export class AgentKeys implements AgentIdentity {
  readonly #dataDir: string;
  #nodeId: string;
  #current: AgentKey;
  #history: History | null;
  #unknownTo: string | null = null;

  constructor(dataDir: string, nodeId: string, current: AgentKey, history: History | null) {
    this.#dataDir = dataDir;
    this.#nodeId = nodeId;
    this.#current = current;
    this.#history = history;
  }

  get nodeId(): string {
    return this.#nodeId;
  }

  /** The key in force. */
  get current(): AgentKey {
    return this.#current;
  }

  /** The key that waits, if any. @throws Error when it cannot be read */
  next(): NextKey | null {
    const next = readNextKey(this.#dataDir);
    if (next === null || !isSame(next.key, this.#current)) return next;
    // It was put in force, and a kill came before the file was removed.
    this.#removeNext();
    return null;
  }

  hasNext(): boolean {
    return this.next() !== null;
  }

  toShow(versions: readonly number[], orchestratorKey: string): ShownKey {
    if (!versions.includes(keysChangeSince)) return this.inForce();
    const next = this.next();
    // An orchestrator restored from a backup knows the key that was in force when the backup was made.
    const before = this.#statements();
    const [statement = null, ...earlier] = next === null ? before : [next.statement, ...before];
    if (statement === null || (next === null && this.#unknownTo === orchestratorKey)) return this.inForce();
    return {
      key: next?.key ?? this.#current,
      statement,
      earlier: versions.includes(earlierShownSince) ? earlier.slice(0, keyStatementLimits.mostEarlier) : [],
    };
  }

  inForce(): ShownKey {
    return { key: this.#current, statement: null, earlier: [] };
  }

  /** How the key in force came in the place of those before it, newest first. */
  #statements(): Statement[] {
    if (this.#history === null) return [];
    const { keys, statement, earlier = [] } = this.#history;
    const key = hexOf(this.#current);
    if (statement === null) return [];
    if (keys.at(-1) === key) return [statement, ...earlier];
    // A kill came after the history was written, and before the new key was put in force.
    return statement.former_key === key ? earlier : [];
  }

  welcomed({ key, statement }: ShownKey, nodeId: string | undefined): boolean {
    const isNew = !isSame(key, this.#current);
    const id = nodeId ?? this.#nodeId;
    if (isNew) {
      // First who this is: it counts under both keys, whichever is in force after a kill.
      const earlier = this.#statements().slice(0, keyStatementLimits.mostEarlier);
      this.#remember({ node_id: id, keys: [hexOf(this.#current), hexOf(key)], statement, earlier });
      // From memory: whatever became of the file, this key is the one that the orchestrator goes by now.
      writePrivateFile(join(this.#dataDir, 'agent.key'), key.pem, 'replace');
      this.#current = key;
      this.#removeNext();
    } else if (id !== this.#nodeId) {
      // Another orchestrator, to which this key is the first.
      const { keys = [hexOf(key)], statement: kept = null, earlier = [] } = this.#history ?? {};
      this.#remember({ node_id: id, keys, statement: kept, earlier });
    }
    this.#nodeId = id;
    return isNew;
  }

  refused({ key }: ShownKey): boolean {
    if (isSame(key, this.#current)) return false;
    // Not another one that was made meanwhile.
    const next = this.next();
    if (next !== null && isSame(next.key, key)) this.#removeNext();
    return true;
  }

  unknownTo(orchestratorKey: string): void {
    this.#unknownTo = orchestratorKey;
  }

  #remember(history: History): void {
    writePrivateFile(historyPath(this.#dataDir), `${JSON.stringify(history)}\n`, 'replace');
    this.#history = history;
  }

  #removeNext(): void {
    removePrivateFile(nextKeyPath(this.#dataDir));
  }
}

/**
 * The identity of this data directory, made at the first call.
 * @throws LoosePermissionsError when the directory or the key is open to others
 */
export async function loadAgentIdentity(dataDir: string): Promise<AgentKeys> {
  ensurePrivateDirectory(dataDir);
  const path = join(dataDir, 'agent.key');
  let pem = readPrivateFile(path);
  if (pem === null) {
    pem = newKeyPem();
    writePrivateFile(path, pem, 'keep');
  }
  const current = keyOfPem(pem, path);
  const history = readHistory(dataDir);
  if (history?.keys.includes(hexOf(current)) === true) return new AgentKeys(dataDir, history.node_id, current, history);
  return new AgentKeys(dataDir, await idOfKey(current.publicKey), current, null);
}

const isSame = (a: AgentKey, b: AgentKey): boolean => a.publicKey.equals(b.publicKey);
const historyPath = (dataDir: string) => join(dataDir, 'agent-keys.json');

/** @returns null for one that is damaged too: the orchestrator says again who the agent is */
function readHistory(dataDir: string): History | null {
  const text = readPrivateFile(historyPath(dataDir));
  if (text === null) return null;
  try {
    const { node_id, keys, statement, earlier = [] } = JSON.parse(text) as History;
    if (!/^[0-9a-f]{32}$/.test(node_id) || !Array.isArray(keys) || !Array.isArray(earlier)) return null;
    const statements = [statement, ...earlier].map((each) => keyStatementSchema.safeParse(each).data ?? null);
    // What comes before one that cannot be read leads nowhere.
    const read = statements.slice(0, statements.concat(null).indexOf(null)) as Statement[];
    return { node_id, keys, statement: read[0] ?? null, earlier: read.slice(1) };
  } catch {
    return null;
  }
}
