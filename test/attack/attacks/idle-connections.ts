import type { Attack } from '../attack.ts'
import { openAll } from './half-sent-bodies.ts'

const CONNECTIONS = 5000

export const idleConnections: Attack = {
  name: 'idle-connections',
  title: '5 000 connections on which nothing is said',
  isKeyless: true,
  aim: (gun) => () => openAll(gun, CONNECTIONS, () => ''),
}
