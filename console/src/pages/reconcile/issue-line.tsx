import { cutText, Text, visibleText } from '../../parts/text.tsx';
import type { Issue } from './issues.ts';

/** An issue: the name of its resource in the font of code, then the difference or the error. */
export function IssueLine({
  issue: { name, text },
  maxLength = 160,
}: {
  readonly issue: Pick<Issue, 'name' | 'text'>;
  readonly maxLength?: number;
}) {
  return (
    <>
      {name !== null && (
        <bdi className="font-mono text-xs [overflow-wrap:anywhere]">{visibleText(cutText(name, 300))}</bdi>
      )}
      <Text text={text.slice(name?.length ?? 0)} maxLength={maxLength} />
    </>
  );
}
