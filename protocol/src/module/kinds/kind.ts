import { choice, type Field, type ValueOf } from './field.ts';

export type Platform = 'linux' | 'macos' | 'windows';

export type Fields = Readonly<Record<string, Field>>;

export type Trigger = 'reload_on' | 'restart_on' | 'rerun_on';

/** A kind of resource: its fields, and how its resources are identified. */
export interface Kind<R extends Fields = Fields, O extends Fields = Fields> {
  readonly description: string;
  /** Platforms, for documentation. An agent that cannot apply a kind fails that resource. */
  readonly platforms: readonly Platform[];
  /** A body in YAML as a module author would write it, for documentation. Empty: no example. */
  readonly example: string;
  /** True if the agent of this release applies the kind. Other kinds are parsed, validated, resolved, and sent. */
  readonly isSupported: boolean;
  /** Fields that must be present. */
  readonly required: R;
  /** Fields that may be absent or null: then the agent does not manage that property. */
  readonly optional: O;
  /** Identities are unique within a space. File and directory kinds share one. */
  readonly space: string;
  /** The fields that form the identity of a body; they cannot contain secrets. */
  readonly identifiedBy: (body: Readonly<Record<string, unknown>>) => readonly string[];
  /**
   * The identity as text, from a body whose identifying fields are evaluated. Injective: two different resources never
   * have the same identity.
   */
  readonly identity: (body: Readonly<Record<string, unknown>>) => string;
  /**
   * Converts an identity to the spelling in which identities are compared. Absent: identities have one spelling only.
   */
  readonly canonical?: (identity: string) => string;
  readonly triggers: readonly Trigger[];
  /** True if `template` may replace `content`. */
  readonly templated: boolean;
  /** At most one field of each group may be given. */
  readonly exclusive: readonly (readonly string[])[];
  /** Fields that require another field: the required field by the requiring one. */
  readonly needs: Readonly<Record<string, string>>;
  /** Fields that are redacted even if they contain no secret. */
  readonly sensitive: readonly string[];
  /** Converts a valid body to its canonical form, if two spellings have the same meaning. */
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
        | 'triggers'
        | 'templated'
        | 'exclusive'
        | 'needs'
        | 'sensitive'
        | 'normalise'
      >
    > {
  /** Default: the first required field. */
  readonly identifiedBy?: readonly string[] | Kind['identifiedBy'];
}

/**
 * @param options `space` defaults to the kind's own name, set by the table of kinds; `identity` to the value of the
 *   only identifying field
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
    exclusive: [],
    needs: {},
    sensitive: [],
    ...options,
    identifiedBy,
  };
}

/** Every kind except script can be declared absent. */
export const ensure = choice('Desired presence of the resource', ['present', 'absent'], 'present');

/** Joins the two parts of a compound identity, so that the first part always ends at the first separator. */
export const joined = (first: unknown, separator: string, second: unknown): string => {
  const code = separator.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0');
  return `${String(first).replaceAll('%', '%25').replaceAll(separator, `%${code}`)}${separator}${String(second)}`;
};
