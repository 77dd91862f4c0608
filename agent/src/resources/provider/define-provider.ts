import type { ResolvedResource, ResourceBodies, ResourceType } from '@muster/protocol/module';
import type { Item, Json, Machine, Provider } from './provider.ts';

type ShapeOf<V> = unknown extends V
  ? 'any'
  : V extends string
    ? 'text'
    : V extends number
      ? 'integer'
      : V extends boolean
        ? 'boolean'
        : V extends readonly string[]
          ? 'list'
          : 'map';
/** The shape of a field. A trailing question mark indicates an optional field. */
type Entry<B, F extends keyof B> = undefined extends B[F] ? `${ShapeOf<Exclude<B[F], undefined>>}?` : ShapeOf<B[F]>;

/** A kind's fields, with the shape of each value. The compiler checks them against the schema in the protocol. */
export type Fields<T extends ResourceType> = {
  readonly [F in keyof ResourceBodies[T]]-?: Entry<ResourceBodies[T], F>;
};

type Typed<T extends ResourceType, Seen, Before extends Json> = Provider<Seen, Before, ResolvedResource<T>>;

/** Defaults that are suitable for most kinds. */
const defaults = {
  recheckable: true,
  brings: () => [],
  path: () => null,
  check: () => {},
  revealsCompletion: () => true,
  inBrief: (seen: unknown): Json => JSON.parse(JSON.stringify(seen)),
  weight: () => 0,
  claim: () => null,
} as const;

/** Returns the methods that apply and remove a single resource. */
function singly(together: NonNullable<Provider['together']>): Pick<Provider, 'apply' | 'remove'> {
  const one = async (item: Item, machine: Machine) => (await together([item], machine))[0] ?? {};
  return {
    apply: (resource, seen, difference, machine) =>
      one({ kind: 'apply', resource, seen, difference, before: null }, machine),
    remove: (resource, before, seen, difference, machine) =>
      one({ kind: 'remove', resource, seen, difference, before }, machine),
  };
}

type Single = 'apply' | 'remove';

/** The members of a provider. A member with a default is optional, and so are `apply` and `remove` with `together`. */
type Definition<T extends ResourceType, Seen, Before extends Json> = Omit<
  Typed<T, Seen, Before>,
  'type' | 'fields' | keyof typeof defaults | Single
> &
  Partial<Pick<Typed<T, Seen, Before>, keyof typeof defaults>> & { type: T; fields: Fields<T> } & (
    | Pick<Typed<T, Seen, Before>, Single>
    | (Partial<Pick<Typed<T, Seen, Before>, Single>> & Required<Pick<Typed<T, Seen, Before>, 'together'>>)
  );

/**
 * @typeParam T the kind; the body of each resource has its type
 * @returns the provider for one kind. By default, it is recheckable, brings nothing, owns no path, refuses no body,
 *   journals all of `seen`, counts no memory for `seen`, and records nothing if nothing changes.
 */
export function defineProvider<T extends ResourceType, Seen, Before extends Json>(
  definition: Definition<T, Seen, Before>,
): Typed<T, Seen, Before> {
  const { together } = definition as Partial<Provider>;
  return { ...defaults, ...(together && singly(together)), ...definition } as unknown as Typed<T, Seen, Before>;
}
