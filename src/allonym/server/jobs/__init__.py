"""Jobs: work on files that goes on in the background, one process each, and survives a restart of the server.

A row of the database says which jobs there are and in which state; a folder holds a job's files. A job ends when its
process has written ``ended``; until then, whatever ends the process or the server, it is taken up again, and what
it had finished is not done twice.
"""
