import { Ellipsis, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { removeModule } from '../../api/modules/modules.ts';
import { IconButton } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Menu, MenuItem } from '../../parts/dialog/menu.tsx';
import { visibleText } from '../../parts/text.tsx';
import { AssignmentLink, ModuleLinks } from '../links.tsx';
import type { Stored } from './draft.ts';
import { useAssignmentsOf } from './use-assignments-of.ts';

/** Removes a module after a confirmation. The dialog lists the assignments and modules that use the module. */
export function RemoveModule({
  module: { name, required_by: requiredBy },
  isRemoved,
  onRemoved,
}: {
  readonly module: Pick<Stored, 'name' | 'required_by'>;
  readonly isRemoved: boolean;
  readonly onRemoved: () => void;
}) {
  const [removing, setRemoving] = useState(false);
  const users = useAssignmentsOf(name);
  return (
    <>
      {!isRemoved && (
        <Menu
          trigger={<IconButton look="plain" label="More" icon={<Ellipsis aria-hidden="true" className="size-4" />} />}
        >
          <MenuItem danger icon={<Trash2 aria-hidden="true" className="size-4" />} onSelect={() => setRemoving(true)}>
            Remove…
          </MenuItem>
        </Menu>
      )}
      <Confirm
        open={removing}
        onOpenChange={setRemoving}
        title={`Remove the module ${visibleText(name)}?`}
        action="Remove module"
        ready={users.length === 0 && requiredBy.length === 0}
        onConfirm={async () => {
          await removeModule(name);
          onRemoved();
        }}
      >
        <p>Its resources stay on machines until the next apply there removes them.</p>
        {users.length > 0 && (
          <div className="mt-2">
            <Callout tone="warn" title="Assignments use this module">
              Remove the module from these assignments first:
              <span className="flex flex-wrap gap-x-3">
                {users.map((assignment) => (
                  <AssignmentLink key={assignment.name} name={assignment.name} />
                ))}
              </span>
            </Callout>
          </div>
        )}
        {requiredBy.length > 0 && (
          <div className="mt-2">
            <Callout tone="warn" title="Modules require this module">
              Remove it from <code className="font-mono">requires</code> of these modules first:
              <span className="block">
                <ModuleLinks modules={requiredBy} />
              </span>
            </Callout>
          </div>
        )}
      </Confirm>
    </>
  );
}
