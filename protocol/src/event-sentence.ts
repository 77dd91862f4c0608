/** An actor or a target of an event. */
interface Party {
  readonly id: string;
  readonly name: string;
}

/** An event, or a notification about one. A notification has no actor or target. */
export interface DescribedEvent {
  readonly summary: string;
  readonly actor?: Party;
  readonly target?: Party;
}

/** First words of summaries that may be capitalized. Names and all other first words stay unchanged. */
const firstWords: ReadonlySet<string> = new Set([
  ...[
    'a',
    'agent',
    'an',
    'announced',
    'apply',
    'assignment',
    'audit',
    'cancellation',
    'channel',
    'drift',
    'enrollment',
  ],
  ...['enrolment', 'maintenance', 'module', 'operator', 'plan', 'secret', 'sign-in', 'tags', 'terminal', 'the'],
]);

/** Returns an event's summary with its first letter capitalized, unless the summary starts with a name. */
export function eventSentence({ summary, actor, target }: DescribedEvent): string {
  const [first = ''] = summary.split(' ', 1);
  const isName = [actor, target].some((party) => party?.name === first || party?.id === first);
  if (isName || !firstWords.has(first)) return summary;
  return summary.charAt(0).toUpperCase() + summary.slice(1);
}
