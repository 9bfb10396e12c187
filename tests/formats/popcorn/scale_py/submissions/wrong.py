#!POPCORN leaderboard scale_py
def custom_kernel(data):
    return data[0] * (data[1] + 1)
