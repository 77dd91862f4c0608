import { z } from 'zod';
import { foreignBraces } from './foreign-braces.ts';
import { type Check, oneLine } from './format.ts';

/**
 * A field of a kind. It has a form as written, where any string may contain an expression, and a form as sent to
 * agents.
 */
export interface Field<T = unknown> {
  readonly shape: 'text' | 'integer' | 'boolean' | 'choice' | 'list' | 'map' | 'any';
  /** Schema of the value as written. The schema of the object handles absent and null values. */
  readonly declared: z.ZodType;
  /** Schema of the value as sent to agents, with evaluated expressions. */
  readonly resolved: z.ZodType<T>;
  /**
   * Whether the field may contain `${{ secrets.x }}`. Only free text may, because other values are validated before
   * dispatch, when secrets are unknown.
   */
  readonly secrets: boolean;
  /** Returns the same string for equivalent values. Absent if each value has only one spelling. */
  readonly canonical?: (value: string) => string;
  /** Default of an absent field. Without a default, an absent field is not managed. */
  readonly whenAbsent?: string;
}

export type ValueOf<F> = F extends Field<infer T> ? T : never;

const hasExpression = (text: string): boolean => text.includes('${{');

/** Returns the message for a value that YAML did not parse as text. */
function notText(input: unknown): string {
  if (typeof input === 'number' || typeof input === 'boolean') {
    return `must be text: write it in quotes, "${String(input)}"`;
  }
  if (Array.isArray(input)) return 'must be text, not a list: write one value, without brackets or a dash';
  if (input !== null && typeof input === 'object')
    return 'must be text, not a mapping: write text with ": " or braces in quotes';
  return 'must be text';
}

/** Adds the default to a field's description. */
const withDefault = (description: string, whenAbsent: string | undefined) =>
  whenAbsent === undefined
    ? { description, rest: {} }
    : { description: `${description}; default: ${whenAbsent}`, rest: { whenAbsent } };

/** Returns the schema for text as written. Checks the format only if the text contains no expression. */
function declaredText(check: Check | undefined, meta: Record<string, unknown>): z.ZodType {
  return z
    .string({ error: (issue) => notText(issue.input) })
    .superRefine((text, context) => {
      if (check === undefined || hasExpression(text)) return;
      const fault = check(text);
      if (fault === undefined) return;
      const braces = foreignBraces(text);
      context.addIssue({ code: 'custom', message: braces === undefined ? fault : `${fault}; ${braces}` });
    })
    .meta(meta);
}

function resolvedText(check: Check | undefined): z.ZodType<string> {
  return z.string({ error: (issue) => notText(issue.input) }).superRefine((text, context) => {
    const fault = check?.(text);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
  });
}

/** Extends the schema of a field that is not text to also accept a string that consists of one expression. */
const orExpression = (schema: z.ZodType, fault: string): z.ZodType =>
  z.union(
    [
      schema,
      z
        .string({ error: fault })
        .regex(/^\s*\$\{\{[\s\S]*\}\}\s*$/, fault)
        .meta({ description: 'One expression that yields the value, such as ${{ param.x }}' }),
    ],
    { error: fault },
  );

interface TextOptions {
  /** Pattern for text without expressions, so that editors can validate it. */
  readonly pattern?: string;
  /** Values that editors suggest. Other values are valid too. */
  readonly proposals?: readonly string[];
  readonly whenAbsent?: string;
}

/** Returns a field for text in a specific format, which cannot contain secrets. */
export const formatted = (about: string, check: Check, options: TextOptions = {}): Field<string> => {
  const { description, rest } = withDefault(about, options.whenAbsent);
  return {
    shape: 'text',
    declared: declaredText(check, {
      description,
      ...patternMeta(options),
    }),
    resolved: resolvedText(check),
    secrets: false,
    ...rest,
  };
};

function patternMeta({ pattern, proposals }: TextOptions): Record<string, unknown> {
  if (pattern === undefined) return {};
  const form = `${pattern}|\\$\\{\\{`;
  return proposals === undefined ? { pattern: form } : { anyOf: [{ enum: [...proposals] }, { pattern: form }] };
}

/** Returns a field for free text, which may contain secrets. */
export const text = (description: string, check?: Check): Field<string> => ({
  shape: 'text',
  declared: declaredText(check, { description }),
  resolved: resolvedText(check),
  secrets: true,
});

/** Returns a field for one line of free text, which may contain secrets. */
export const line = (description: string): Field<string> => text(description, oneLine);

export const integer = (description: string, minimum: number, maximum: number): Field<number> => {
  const fault = `must be a whole number from ${minimum} to ${maximum}`;
  const resolved = z.number({ error: fault }).int(fault).min(minimum, fault).max(maximum, fault);
  return {
    shape: 'integer',
    declared: orExpression(resolved, `${fault}, not in quotes`).meta({ description }),
    resolved,
    secrets: false,
  };
};

export const boolean = (description: string): Field<boolean> => {
  const resolved = z.boolean({ error: 'must be true or false' });
  return {
    shape: 'boolean',
    declared: orExpression(resolved, 'must be true or false, not in quotes').meta({ description }),
    resolved,
    secrets: false,
  };
};

/** @param instead what to write for a value of other tools, by that value */
export const choice = <const V extends readonly [string, ...string[]]>(
  about: string,
  values: V,
  whenAbsent?: V[number],
  instead: Readonly<Record<string, string>> = {},
): Field<V[number]> => {
  const { description, rest } = withDefault(about, whenAbsent);
  const fault = `must be one of ${values.join(', ')}`;
  const check: Check = (value) => {
    if (values.includes(value)) return undefined;
    return Object.hasOwn(instead, value) ? `${fault}: ${instead[value]}` : fault;
  };
  return {
    shape: 'choice',
    declared: declaredText(check, { description, anyOf: [{ enum: [...values] }, { pattern: '\\$\\{\\{' }] }),
    resolved: z.enum(values, { error: fault }),
    secrets: false,
    ...rest,
  };
};

/** @param limits without `atMost`, only the size of a module bounds the list */
export const list = (
  description: string,
  item: Field<string>,
  { atLeast = 0, atMost }: { atLeast?: number; atMost?: number } = {},
): Field<string[]> => {
  const counts = atMost === undefined ? `at least ${atLeast}` : `${atLeast} to ${atMost}`;
  const fault = atLeast > 0 || atMost !== undefined ? `must be a list of ${counts}` : 'must be a list';
  const within = <T extends z.ZodArray>(array: T): T => {
    const bounded = array.min(atLeast, fault);
    return atMost === undefined ? bounded : bounded.max(atMost, fault);
  };
  return {
    shape: 'list',
    declared: orExpression(within(z.array(item.declared)), fault).meta({ description }),
    resolved: within(z.array(item.resolved, { error: fault })),
    secrets: item.secrets,
  };
};

export const map = (description: string, name: Check, value: Field<string>): Field<Record<string, string>> => {
  const key = z.string().superRefine((text, context) => {
    const fault = name(text);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
  });
  const fault = 'must be a mapping of names to text, NAME: "value"';
  return {
    shape: 'map',
    declared: orExpression(z.record(key, value.declared), fault).meta({ description }),
    resolved: z.record(key, value.resolved, { error: fault }),
    secrets: value.secrets,
  };
};

const isJson = (value: unknown): boolean => {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object') return typeof value === 'string' || typeof value === 'boolean';
  return value === null || Object.values(value).every(isJson);
};

/** Returns a field for any value except null: text, a number, true or false, a list, or a mapping. */
export const anyValue = (description: string): Field<unknown> => {
  const fault = 'must be text, a number, true or false, a list, or a mapping';
  const schema = z.unknown().refine((value) => value !== null && isJson(value), fault);
  return { shape: 'any', declared: schema.meta({ description }), resolved: schema, secrets: true };
};
