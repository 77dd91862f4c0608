import { CliError, exits, usageError } from '../exit.ts';

/** IDs are ULIDs: the first 10 of the 26 characters encode the time, so recent IDs share a prefix. */
const fullId = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/**
 * Completes an ID from its first or last characters.
 * @param noun the noun for the identified item, used in messages
 * @param list the command that lists the IDs
 * @param ids reads all IDs; called only if the typed text is not a complete ID
 * @throws CliError if no ID or more than one matches
 */
export async function findId(
  noun: string,
  list: string,
  idPart: string,
  ids: () => Promise<readonly string[]>,
): Promise<string> {
  const typed = idPart.toUpperCase();
  if (typed === '') throw usageError(`the ${noun} id is empty`);
  if (fullId.test(typed)) return typed;
  const fitting = (await ids()).filter((id) => id.startsWith(typed) || id.endsWith(typed));
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return only;
  if (only === undefined)
    throw new CliError(
      exits.failed,
      'id_unknown',
      `no recent ${noun} has an id that begins or ends with ${JSON.stringify(idPart)}`,
      `List them: ${list}`,
    );
  throw new CliError(
    exits.failed,
    'id_ambiguous',
    `${fitting.length} ${noun} ids begin or end with ${JSON.stringify(idPart)}`,
    `Type more of the id; the last characters differ most. List them: ${list}`,
  );
}
