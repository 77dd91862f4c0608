import { CliError, exits, usageError } from '../exit.ts';

/** Ids are ULIDs: 26 characters, the first ten of which are the time, so that those of one day begin alike. */
const whole = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/**
 * The whole id that is meant by its beginning or its end.
 * @param noun what it is the id of, for messages
 * @param list the verb that lists them
 * @param ids  read only when what was typed is not a whole id
 * @throws CliError when none fits, or more than one
 */
export async function findId(
  noun: string,
  list: string,
  wanted: string,
  ids: () => Promise<readonly string[]>,
): Promise<string> {
  const typed = wanted.toUpperCase();
  if (typed === '') throw usageError(`${noun} was named by nothing at all`);
  if (whole.test(typed)) return typed;
  const fitting = (await ids()).filter((id) => id.startsWith(typed) || id.endsWith(typed));
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return only;
  if (only === undefined)
    throw new CliError(
      exits.failed,
      'id_unknown',
      `no recent ${noun} has an id that begins or ends with ${JSON.stringify(wanted)}`,
      `See those there are: ${list}`,
    );
  throw new CliError(
    exits.failed,
    'id_ambiguous',
    `${fitting.length} ids of ${noun}s begin or end with ${JSON.stringify(wanted)}`,
    `Type more of it: the ends differ most. See those there are: ${list}`,
  );
}
