/** An actor or a target of an event. */
interface Party {
  readonly id: string;
  readonly name: string;
}

/** An event, or a notification of one, which has no parties. */
export interface DescribedEvent {
  readonly summary: string;
  readonly actor?: Party;
  readonly target?: Party;
}

/** Returns an event's summary with a capital letter at its start, unless it starts with the name of a party. */
export function eventSentence({ summary, actor, target }: DescribedEvent): string {
  const [first = ''] = summary.split(' ', 1);
  const isName = [actor, target].some((party) => party?.name === first || party?.id === first);
  // Names and addresses in other places contain digits or punctuation.
  if (isName || !/^[a-z][a-z-]*$/.test(first)) return summary;
  return summary.charAt(0).toUpperCase() + summary.slice(1);
}
