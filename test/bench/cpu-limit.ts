// Limits the CPU of processes by cgroups of version 1 or 2. Needs Linux and root.
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const PERIOD_MICROSECONDS = 20_000

/** Gives these processes, and those that they start, a share of a core together. Returns what removes the limit. */
export async function limitCpu(pids: number[], share: number): Promise<() => Promise<void>> {
  const isFirst = existsSync('/sys/fs/cgroup/cpu')
  const root = join('/sys/fs/cgroup', isFirst ? 'cpu' : '')
  const group = join(root, `postgram-bench-${pids[0]}`)
  const quota = Math.round(share * PERIOD_MICROSECONDS)
  await mkdir(group)
  if (isFirst) {
    await writeFile(join(group, 'cpu.cfs_period_us'), `${PERIOD_MICROSECONDS}`)
    await writeFile(join(group, 'cpu.cfs_quota_us'), `${quota}`)
  } else {
    await writeFile(join(group, 'cpu.max'), `${quota} ${PERIOD_MICROSECONDS}`)
  }
  for (const pid of pids) await moveTo(group, pid)
  return async () => {
    const left = (await readFile(join(group, 'cgroup.procs'), 'utf8')).split('\n').filter(Boolean)
    for (const pid of left) await moveTo(root, Number(pid))
    await rmdir(group)
  }
}

async function moveTo(group: string, pid: number): Promise<void> {
  await writeFile(join(group, 'cgroup.procs'), `${pid}`).catch((error) => {
    // A process that has ended in the meantime needs no limit.
    if (error.code !== 'ESRCH') throw error
  })
}

/** Returns a process and all that descend from it. */
export async function treeOf(root: number): Promise<number[]> {
  const children = new Map<number, number[]>()
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
    // The name in parentheses may hold spaces; the state and the parent follow it.
    const parent = Number(stat.replace(/^.*\) /s, '').split(' ')[1])
    children.set(parent, [...(children.get(parent) ?? []), Number(name)])
  }
  const tree = [root]
  for (const pid of tree) tree.push(...(children.get(pid) ?? []))
  return tree
}
