import { type AgentFacts, type ModuleDocument, ownFact } from '@muster/protocol/module';
import {
  type DesiredModules,
  type EncodedPayload,
  encodePayload,
  type Payload,
  resolvePayload,
} from './desired-set.ts';
import { noLookups } from './lookups.ts';

/** A desired state with its encoded form. Agents share it, so it must not be changed. */
export interface SharedSet {
  readonly payload: Payload;
  readonly encoded: EncodedPayload;
}

/** A fact that a resolution read, with its value. If the key is null, the value contains the names of all facts. */
interface Read {
  readonly from: 'attributes' | 'tags';
  readonly key: string | null;
  readonly value: string | undefined;
}

interface Known {
  readonly key: string;
  readonly reads: readonly Read[];
  readonly set: SharedSet;
}

/** Maximum number of desired states, and maximum total characters of their JSON. The oldest are evicted. */
const maxSets = 32;
const maxLength = 16 * 1024 * 1024;

/**
 * Resolves desired states once for all similar agents. Resolution is a pure function, so two agents get the same
 * desired state if their desired modules, the values of their lookups, and all facts that the resolution read are equal.
 * @returns a function with the arguments and errors of {@link resolvePayload}. A caller must always pass the same
 * revisions of the documents
 */
export function createSharedResolution() {
  let known: Known[] = [];
  let length = 0;

  return (
    documents: readonly ModuleDocument[],
    desired: DesiredModules,
    agent: AgentFacts,
    lookups = noLookups,
  ): SharedSet => {
    const key = `${lookups.key}${JSON.stringify(desired)}`;
    const found = known.find((one) => one.key === key && one.reads.every((read) => factOf(agent, read) === read.value));
    if (found) return found.set;
    const { facts, reads, isOfOne } = watched(agent);
    const payload = resolvePayload(documents, desired, facts, lookups);
    const set = { payload, encoded: encodePayload(payload) };
    // No other agent has the same name or id.
    if (isOfOne()) return set;
    known.push({ key, reads, set });
    length += set.encoded.text.length;
    while (known.length > maxSets || (length > maxLength && known.length > 1)) {
      length -= known[0]!.set.encoded.text.length;
      known = known.slice(1);
    }
    return set;
  };
}

const factOf = (agent: AgentFacts, { from, key }: Pick<Read, 'from' | 'key'>): string | undefined =>
  key === null ? JSON.stringify(Object.keys(agent[from])) : ownFact(agent[from], key);

/** Returns an agent's facts, and records which of them are read. */
function watched(agent: AgentFacts) {
  const reads: Read[] = [];
  let isOfOne = false;
  const values = (from: Read['from']) => {
    const record = (key: string | symbol | null) => {
      if (typeof key === 'symbol') throw new TypeError('the key of a fact must be a string');
      if (!reads.some((read) => read.from === from && read.key === key))
        reads.push({ from, key, value: factOf(agent, { from, key }) });
    };
    const handler: ProxyHandler<Readonly<Record<string, string>>> = {
      getOwnPropertyDescriptor(target, key) {
        record(key);
        return Reflect.getOwnPropertyDescriptor(target, key);
      },
      get(target, key) {
        record(key);
        return Reflect.get(target, key);
      },
      has(target, key) {
        record(key);
        return Reflect.has(target, key);
      },
      ownKeys(target) {
        record(null);
        return Reflect.ownKeys(target);
      },
    };
    return new Proxy(agent[from], handler);
  };
  const facts: AgentFacts = {
    get name() {
      isOfOne = true;
      return agent.name;
    },
    get node_id() {
      isOfOne = true;
      return agent.node_id;
    },
    attributes: values('attributes'),
    tags: values('tags'),
  };
  return { facts, reads, isOfOne: () => isOfOne };
}
