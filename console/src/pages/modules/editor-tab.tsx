import type { EditorMemory } from '../../editor/code-editor.tsx';
import { visibleText } from '../../parts/text.tsx';
import { Conflict } from './conflict.tsx';
import type { Stored } from './draft.ts';
import { type ModuleCheck, ModuleEditor } from './module-editor.tsx';
import type { ModuleDraft } from './use-module-draft.ts';

/** The editor for a stored module. If a newer revision conflicts, the conflict is shown above it. */
export function EditorTab({
  latest,
  state: { draft, hasConflict, edit, reset, keep },
  check,
  memory,
  onSave,
}: {
  readonly latest: Stored;
  readonly state: ModuleDraft;
  readonly check: ModuleCheck;
  readonly memory: EditorMemory;
  readonly onSave: () => void;
}) {
  return (
    <div className="flex h-full flex-col gap-3">
      {hasConflict && <Conflict draft={draft} latest={latest} onKeep={keep} onTake={() => reset(latest)} />}
      <div className="min-h-60 flex-1">
        <ModuleEditor
          label={`Text of ${visibleText(latest.name)}`}
          text={draft.text}
          onChange={edit}
          onSave={onSave}
          check={check}
          memory={memory}
        />
      </div>
    </div>
  );
}
