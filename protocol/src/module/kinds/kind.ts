import { choice, type Field, type ValueOf } from './field.ts';

export type Platform = 'linux' | 'macos' | 'windows';

export type Fields = Readonly<Record<string, Field>>;

export type Trigger = 'reload_on' | 'restart_on' | 'rerun_on';

/** A kind of resource: its fields, and what makes two resources of it the same one. */
export interface Kind<R extends Fields = Fields, O extends Fields = Fields> {
  readonly description: string;
  /** Platforms, for documentation. An agent that cannot apply a kind fails that resource. */
  readonly platforms: readonly Platform[];
  /** One body as an author would write it, in YAML, for documentation. Empty: none. */
  readonly example: string;
  /** Whether the agent of this release applies it. Others are parsed, validated, resolved, and sent. */
  readonly isSupported: boolean;
  /** Fields that cannot be left out. */
  readonly required: R;
  /** Fields that may be absent or null: then that aspect is not managed. */
  readonly optional: O;
  /** Identities are unique within a space. File and directory kinds share one. */
  readonly space: string;
  /** The fields that the identity of this body is made of; no secret may stand in them. */
  readonly identifiedBy: (body: Readonly<Record<string, unknown>>) => readonly string[];
  /**
   * The identity as people read it, of a body whose identifying fields are final. Injective: two different things
   * never get the same.
   */
  readonly identity: (body: Readonly<Record<string, unknown>>) => string;
  /** The spelling identities are compared in; the identity itself where things have one spelling only. */
  readonly canonical?: (identity: string) => string;
  readonly triggers: readonly Trigger[];
  /** Whether `template` may stand for `content`. */
  readonly templated: boolean;
  /** At most one field of each group may be given. */
  readonly exclusive: readonly (readonly string[])[];
  /** Fields that mean nothing without another: the other by the field. */
  readonly needs: Readonly<Record<string, string>>;
  /** Redacted even when no secret stands in them. */
  readonly sensitive: readonly string[];
  /** The final form of a body that is valid, where two spellings mean the same. */
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
 *   one field it is identified by
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

/** Everything but a script can be declared away. */
export const ensure = choice('Whether the resource should be there; present when absent', ['present', 'absent']);

/** The two parts of a compound identity, so that the first one always ends at the first separator. */
export const joined = (first: unknown, separator: string, second: unknown): string => {
  const code = separator.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0');
  return `${String(first).replaceAll('%', '%25').replaceAll(separator, `%${code}`)}${separator}${String(second)}`;
};
