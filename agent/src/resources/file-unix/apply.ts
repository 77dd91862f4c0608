import type { ResolvedResource } from '@muster/protocol/module';
import { writeFileAtomically, writeSymlinkAtomically } from '../../host/atomic-write.ts';
import { HostFailure } from '../../host/failure.ts';
import { expectUnchanged, type Ownership, withFile } from '../../host/inspect.ts';
import { setFileOwnership, setLinkOwner } from '../../host/ownership.ts';
import { removeFile } from '../../host/remove.ts';
import { runCommand } from '../../host/run-command.ts';
import { createdOwner, replacedWhole, targetOwnership, touchOwnership } from '../ownership.ts';
import type { Difference, Machine, Outcome } from '../provider.ts';
import { bodyOf, createdMode, type FileBefore, pathOf, type SeenFile, wantedContent, wrongType } from './seen.ts';

/** Records what of a file is about to change for the first time, its content by a copy. */
export async function rememberFile(
  resource: ResolvedResource,
  seen: SeenFile,
  difference: Difference,
  before: FileBefore | null,
  machine: Machine,
): Promise<FileBefore> {
  const { found, ownership } = seen;
  if (before !== null && before.was !== 'file') return before;
  if (found.type === 'absent') return before === null ? { was: 'absent' } : replacedWhole(before);
  if (found.type === 'symlink')
    return before === null
      ? { was: 'symlink', target: found.target, uid: found.uid, gid: found.gid }
      : replacedWhole(before);
  if (found.type !== 'file') throw wrongType(pathOf(resource), found);
  // A copy: what the journal holds only changes by what is recorded.
  const record = {
    ...(before ?? {
      was: 'file',
      uid: found.uid,
      gid: found.gid,
      mode: found.mode,
      ownerName: ownership.ownerName ?? String(found.uid),
      groupName: ownership.groupName ?? String(found.gid),
      content: null,
      touched: [],
    }),
  };
  const changing = new Set(difference.changes.map(({ field }) => field));
  // When a link takes its place or it goes, its content is what would be lost, and its owner and permissions too.
  const goes = changing.has('symlink') || changing.has('ensure');
  if ((changing.has('content') || goes) && record.content === null) {
    const { content } = found;
    record.content = await (content?.bytes != null
      ? machine.copies.keep(content.bytes)
      : withFile(machine.walk, pathOf(resource), found, (openFd) => machine.copies.keep({ openFd })));
    changing.add('content');
  }
  return touchOwnership(record, changing, goes, found, ownership);
}

export async function applyFile(
  resource: ResolvedResource,
  seen: SeenFile,
  difference: Difference,
  machine: Machine,
): Promise<Outcome> {
  const body = bodyOf(resource);
  const { found } = seen;
  const outcome = machine.walk.within(
    body.path,
    body.ensure === 'absent' ? 'null' : 'make',
    async (parent, name): Promise<Outcome> => {
      if (body.ensure === 'absent') {
        expectUnchanged(parent, name, found);
        removeFile(parent, name);
        machine.changedDirectory(parent.path);
        return {};
      }
      const existing = found.type === 'file' || found.type === 'symlink' ? found : null;
      const base: Ownership | null = existing?.type === 'symlink' ? { ...existing, mode: createdMode } : existing;
      const target = targetOwnership(body, base, seen.ownership, { ...createdOwner(), mode: createdMode });
      if (body.symlink != null) {
        if (existing?.type === 'symlink' && existing.target === body.symlink)
          setLinkOwner(parent, name, target.uid, target.gid);
        else {
          expectUnchanged(parent, name, found);
          writeSymlinkAtomically(parent, name, { target: body.symlink, uid: target.uid, gid: target.gid });
        }
        machine.changedDirectory(parent.path);
        return {};
      }
      const contentChanges = difference.changes.some(
        ({ field }) => field === 'content' || field === 'ensure' || field === 'symlink',
      );
      if (!contentChanges) {
        await setFileOwnership(parent, name, target);
        return {};
      }
      const content = wantedContent(body) ?? Buffer.alloc(0);
      const { validate } = body;
      await writeFileAtomically(parent, name, {
        content: { bytes: content },
        ...target,
        beforeRename: async (temporary) => {
          if (validate != null) await runValidation(validate, temporary, resource, machine);
          expectUnchanged(parent, name, found);
        },
      });
      machine.changedDirectory(parent.path);
      return {};
    },
  );
  return (await outcome) ?? {};
}

async function runValidation(
  command: string,
  file: string,
  resource: ResolvedResource,
  machine: Machine,
): Promise<void> {
  const quoted = `'${file.replaceAll("'", "'\\''")}'`;
  const result = await runCommand(
    {
      program: 'sh',
      args: ['-c', command.replaceAll('%', () => quoted)],
      timeLimit: machine.limits.checkMs,
      outputCap: 4096,
      started: (process) => machine.startedProcess(process),
    },
    machine.clock,
  );
  if (result.exitCode === 0) return;
  const how = result.timedOut ? 'took too long' : `ended with ${result.exitCode ?? result.signal}`;
  const words = resource.sensitive_fields.length > 0 ? '' : (result.stderr || result.stdout).trim();
  const said = words === '' ? '' : `: ${words}`;
  throw new HostFailure(`the new content of ${pathOf(resource)} was refused, \`validate\` ${how}${said}`);
}
