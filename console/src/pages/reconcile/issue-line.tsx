import { Line, PathLine, PathText, Text } from '../../parts/text.tsx';
import type { Issue } from './issues.ts';

type IssueText = Pick<Issue, 'name' | 'text'>;

/** Shows an issue: the name of its resource in a monospace font, then the difference or the error. */
export function IssueLine({
  issue: { name, text },
  maxLength = 160,
}: {
  readonly issue: IssueText;
  readonly maxLength?: number;
}) {
  return (
    <>
      {name !== null && (
        <span className="font-mono text-xs">
          <PathText text={name} />
        </span>
      )}
      <Text text={text.slice(name?.length ?? 0)} maxLength={maxLength} />
    </>
  );
}

/**
 * An issue on a phone: the name of its resource on its own line, and the difference or the error below it.
 * @param isOpen whether to show the whole issue. By default, a long name is truncated in the middle, and the rest at its end.
 * @param more number of other issues
 */
export function IssueBlock({
  issue: { name, text },
  isOpen,
  more,
}: {
  readonly issue: IssueText;
  readonly isOpen: boolean;
  readonly more: number;
}) {
  const difference = name === null ? text : text.slice(name.length).replace(/^: /, '');
  return (
    <span className="min-w-0 flex-1">
      {name !== null && (
        <span className="flex min-w-0 pb-0.5 font-mono">
          {isOpen ? <PathText text={name} /> : <PathLine text={name} />}
        </span>
      )}
      <span className={isOpen ? '' : 'flex min-w-0'}>
        {isOpen ? <Text text={difference} maxLength={160} /> : <Line text={difference} />}
        {more > 0 && <span className="shrink-0 whitespace-pre text-muted"> · {more} more</span>}
      </span>
    </span>
  );
}
