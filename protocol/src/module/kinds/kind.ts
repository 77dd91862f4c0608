import { choice, type Field, type ValueOf } from './field.ts';

export type Platform = 'linux' | 'macos' | 'windows';

export type Fields = Readonly<Record<string, Field>>;

/** An error in how a body combines its fields. */
export interface CombinationFault {
  /** The field, or an empty path for the whole body. */
  readonly path: readonly string[];
  readonly message: string;
}

export type Trigger = 'reload_on' | 'restart_on' | 'rerun_on';

/** A kind of resource: its fields, and how its resources are identified. */
export interface Kind<R extends Fields = Fields, O extends Fields = Fields> {
  readonly description: string;
  /** Platforms of the kind, for documentation. An agent that cannot apply a kind reports the resource as failed. */
  readonly platforms: readonly Platform[];
  /** Example of a body in YAML, for documentation; may be empty. */
  readonly example: string;
  /**
   * Whether the agent of this release applies the kind. Other kinds can be declared, and are sent to agents, but fail
   * there.
   */
  readonly isSupported: boolean;
  readonly required: R;
  /** Fields that may be absent or null. The agent does not manage an absent field. */
  readonly optional: O;
  /** Identities are unique within a space. File and directory kinds share a space. */
  readonly space: string;
  /** Returns the fields that form the identity of a body. They cannot contain secrets. */
  readonly identifiedBy: (body: Readonly<Record<string, unknown>>) => readonly string[];
  /**
   * Returns the identity of a body whose identifying fields are evaluated. Different resources have different
   * identities.
   */
  readonly identity: (body: Readonly<Record<string, unknown>>) => string;
  /**
   * Converts an identity to the form in which identities are compared. Absent if identities have only one spelling.
   */
  readonly canonical?: (identity: string) => string;
  /**
   * Returns the paths of the files that a body declares besides the object that its identity names. No other resource
   * can declare them. Absent if there are none.
   */
  readonly writes?: (body: Readonly<Record<string, unknown>>) => readonly string[];
  readonly triggers: readonly Trigger[];
  /** Whether `template` may replace `content`. */
  readonly templated: boolean;
  /** What `source` refers to in the module folder; null if the kind has no such field. */
  readonly sourced: 'file' | 'directory' | null;
  /** At most one field in each group may be set. */
  readonly exclusive: readonly (readonly string[])[];
  /** Maps a field to another field that it requires. */
  readonly needs: Readonly<Record<string, string | readonly string[]>>;
  /** Optional fields that a resource requires unless it is declared absent. */
  readonly presentNeeds: readonly string[];
  /** At least one field in each group must be set, unless the resource is absent. */
  readonly oneOf: readonly (readonly string[])[];
  /**
   * Returns the errors in combinations of values that the fields allow separately. A value may still be an expression.
   */
  readonly faults: (body: Readonly<Record<string, unknown>>) => readonly CombinationFault[];
  /** Fields that are redacted even if they contain no secret. */
  readonly sensitive: readonly string[];
  /** Converts a valid body to its canonical form. Absent if bodies have only one form. */
  readonly normalise?: (body: Record<string, unknown>) => void;
}

type Simplify<T> = { [K in keyof T]: T[K] } & {};

export type BodyOf<K> =
  K extends Kind<infer R, infer O>
    ? Simplify<{ [F in keyof R]: ValueOf<R[F]> } & { [F in keyof O]?: ValueOf<O[F]> }>
    : never;

interface KindOptions<R extends Fields, O extends Fields>
  extends Pick<Kind<R, O>, 'description' | 'platforms' | 'required' | 'optional'>,
    Partial<
      Pick<
        Kind,
        | 'example'
        | 'isSupported'
        | 'space'
        | 'identity'
        | 'canonical'
        | 'writes'
        | 'triggers'
        | 'templated'
        | 'sourced'
        | 'exclusive'
        | 'needs'
        | 'presentNeeds'
        | 'oneOf'
        | 'faults'
        | 'sensitive'
        | 'normalise'
      >
    > {
  /** The first required field by default. */
  readonly identifiedBy?: readonly string[] | Kind['identifiedBy'];
}

/**
 * Defines a kind.
 * @param options `space` defaults to the kind's name, which the table of kinds sets. `identity` defaults to the value
 * of the first identifying field
 */
export function defineKind<const R extends Fields, const O extends Fields>(options: KindOptions<R, O>): Kind<R, O> {
  const given = options.identifiedBy ?? [Object.keys(options.required)[0] as string];
  const identifiedBy = typeof given === 'function' ? given : () => given;
  return {
    example: '',
    isSupported: true,
    space: '',
    identity: (body) => String(body[identifiedBy(body)[0] as string]),
    triggers: [],
    templated: false,
    sourced: null,
    exclusive: [],
    needs: {},
    presentNeeds: [],
    oneOf: [],
    faults: () => [],
    sensitive: [],
    ...options,
    identifiedBy,
  };
}

/** Whether the resource should be present. Every kind except script, reboot, and selinux-mode has this field. */
export const ensure = choice('Desired presence of the resource', ['present', 'absent'], 'present', {
  running: 'for a service that runs, write running: true',
  started: 'for a service that runs, write running: true',
  stopped: 'for a service that does not run, write running: false',
  installed: 'write present',
  removed: 'write absent',
});

/**
 * Joins two parts of an identity. Escapes separators in the first part, so that different parts have different
 * identities.
 */
export const joined = (first: unknown, separator: string, second: unknown): string => {
  const code = separator.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0');
  return `${String(first).replaceAll('%', '%25').replaceAll(separator, `%${code}`)}${separator}${String(second)}`;
};
